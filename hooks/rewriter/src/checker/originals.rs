//! Rule 1: original instructions are themselves and refer to what they referred to. What they
//! refer to in the code, and where control goes after them, are the seams of rules 2 and 3.

use super::Question;
use super::code::{ClaimedCode, ClaimedInst, Owner};
use super::finding::{CheckRule, Finding};
use crate::flow::{AddressChain, InstIndex};
use flipwave_codeobj::{Relocation, RelocationKind};
use flipwave_isa::{Encoding, Inst, Opcode, Pc, Value};
use std::collections::{BTreeSet, HashMap};

/// A way that control takes through inserted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seam {
    /// Where it begins: an address of the new code.
    pub start: u64,
    /// The original instruction that it must come to.
    pub to: InstIndex,
    /// How control comes to its beginning.
    pub from: SeamOrigin,
}

/// How control comes to the beginning of a seam.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeamOrigin {
    /// From an original instruction: after it, or by its branch.
    Flow,
    /// By an address that the code computes or finds in memory.
    Address,
    /// By its old address, in a function that stays and is not understood.
    Old,
    /// The kernel of this index starts there.
    Kernel(usize),
}

/// Compares all original instructions with what is at their places; gives the seams.
pub fn check(
    question: &Question<'_>,
    code: &ClaimedCode,
    findings: &mut Vec<Finding>,
) -> BTreeSet<Seam> {
    let mut seams = BTreeSet::new();
    let chains: HashMap<InstIndex, &AddressChain> = (question.program.addresses.iter())
        .flat_map(|chain| [(chain.low, chain), (chain.high, chain)])
        .collect();
    for item in code.items() {
        let Owner::Original(index) = item.owner else { continue };
        let inst = &question.program.instructions[index];
        if !is_same(question, item, inst, chains.contains_key(&index)) {
            let what = format!("`{}` instead of `{}`", item.facts.inst, inst);
            findings.push(Finding::at(CheckRule::Original, item.pc, what).of(inst.pc));
            continue;
        }
        let mut goes_on = |start: u64, old: u64| {
            if let Some(to) = question.original_at(old) {
                seams.insert(Seam { start, to, from: SeamOrigin::Flow });
            }
        };
        if item.facts.falls_through {
            goes_on(item.end(), inst.pc.0.wrapping_add(inst.size.into()));
        }
        if let (Some(new), Some(old)) = (item.facts.target(item.pc), inst.branch_target) {
            goes_on(new, old.0);
            if question.original_at(old.0).is_none() && (new != old.0 || code.is_inserted(new)) {
                let what = format!("it leads to {old}, where no instruction begins, no more");
                findings.push(Finding::at(CheckRule::Control, item.pc, what).of(inst.pc));
            }
        }
    }
    for chain in &question.program.addresses {
        check_chain(question, code, chain, &mut seams, findings);
    }
    check_pointers(question, &mut seams, findings);
    old_addresses(question, &mut seams);
    super::entry::seams(question, &mut seams, findings);
    seams
}

/// Whether an instruction is the original one, but for what says where it goes.
fn is_same(question: &Question<'_>, item: &ClaimedInst, old: &Inst, is_address: bool) -> bool {
    let new = &item.facts.inst;
    let size = old.size.into();
    let (Some(old_bytes), Some(new_bytes)) =
        (question.original.bytes_at(old.pc, size), question.new.bytes_at(Pc(item.pc), size))
    else {
        return false;
    };
    if old_bytes == new_bytes {
        return true;
    }
    if old.branch_target.is_some() && matches!(old.encoding, Encoding::Sopp | Encoding::Sopk) {
        // The distance is the lower half of the word.
        return new.size == old.size && old_bytes.get(2..) == new_bytes.get(2..);
    }
    is_address && is_same_but_for_constants(new, old)
}

fn is_same_but_for_constants(new: &Inst, old: &Inst) -> bool {
    let is_constant = |value: &Value| matches!(value, Value::Integer(_) | Value::Literal(_));
    new.operation == old.operation
        && new.encoding == old.encoding
        && new.operands.len() == old.operands.len()
        && new
            .operands
            .iter()
            .zip(&old.operands)
            .all(|(new, old)| new == old || (is_constant(&new.value) && is_constant(&old.value)))
}

/// The constant that an addition of an address chain adds.
fn constant(inst: &Inst) -> Option<u32> {
    inst.sources().find_map(|operand| match operand.value {
        Value::Integer(value) => Some(value as u32),
        Value::Literal(value) => Some(value),
        _ => None,
    })
}

/// The address that a chain computes where it is now.
fn check_chain(
    question: &Question<'_>,
    code: &ClaimedCode,
    chain: &AddressChain,
    seams: &mut BTreeSet<Seam>,
    findings: &mut Vec<Finding>,
) {
    let item = |index| question.place(index).and_then(|pc| code.at(pc.0));
    // What was removed was asked to be.
    let (Some(getpc), Some(low), Some(high)) =
        (item(chain.getpc), item(chain.low), item(chain.high))
    else {
        return;
    };
    let finding = |what: String| {
        Finding::at(CheckRule::Original, getpc.pc, what).of(question.old(chain.getpc))
    };
    let (Some(low_half), Some(high_half)) = (constant(&low.facts.inst), constant(&high.facts.inst))
    else {
        findings.push(finding("an address is computed without constants".to_owned()));
        return;
    };
    let distance = u64::from(high_half) << 32 | u64::from(low_half);
    let new = if low.facts.opcode() == Opcode::SSub {
        getpc.end().wrapping_sub(distance)
    } else {
        getpc.end().wrapping_add(distance)
    };
    match question.original_at(chain.target.0) {
        Some(to) => _ = seams.insert(Seam { start: new, to, from: SeamOrigin::Address }),
        None if new == chain.target.0 => {}
        None => {
            let what = format!("the address {} became {}", chain.target, Pc(new));
            findings.push(finding(what));
        }
    }
}

/// In functions that stay and are not understood, control may come to any instruction by its old
/// address, whatever stands there now.
fn old_addresses(question: &Question<'_>, seams: &mut BTreeSet<Seam>) {
    for function in question.program.functions.iter().filter(|own| !own.unresolved.is_empty()) {
        if question.stays(function) {
            let seam = |to| Seam { start: question.old(to).0, to, from: SeamOrigin::Old };
            seams.extend(function.instructions.iter().map(seam));
        }
    }
}

/// Code addresses in data, which the loader fills in.
fn check_pointers(
    question: &Question<'_>,
    seams: &mut BTreeSet<Seam>,
    findings: &mut Vec<Finding>,
) {
    let value = |relocation: &Relocation| {
        let symbol = relocation.symbol.as_ref().map_or(0, |symbol| symbol.address);
        symbol.wrapping_add_signed(relocation.addend)
    };
    let is_pointer = |relocation: &&Relocation| {
        matches!(relocation.kind, RelocationKind::Relative64 | RelocationKind::Abs64)
    };
    let new: HashMap<u64, &Relocation> =
        question.new.relocations().iter().map(|own| (own.place, own)).collect();
    for relocation in question.original.relocations().iter().filter(is_pointer) {
        let Some(to) = question.original_at(value(relocation)) else { continue };
        match new.get(&relocation.place).filter(|own| is_pointer(own)) {
            Some(new) => {
                _ = seams.insert(Seam { start: value(new), to, from: SeamOrigin::Address })
            }
            None => {
                let what =
                    format!("the pointer at {} is no longer filled in", Pc(relocation.place));
                findings.push(
                    Finding::at(CheckRule::Original, relocation.place, what).of(question.old(to)),
                );
            }
        }
    }
}
