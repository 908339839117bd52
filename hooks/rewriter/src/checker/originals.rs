//! Rule 1: original instructions are unchanged. Their successors and the code addresses they refer to
//! are the splices of rules 2 and 3.

use super::code::{ClaimedCode, ClaimedInst, Owner};
use super::context::CheckContext;
use super::entry;
use super::finding::{CheckRule, Finding};
use super::splice::{Splice, SpliceOrigin};
use crate::flow::{AddressChain, InstIndex};
use flipwave_codeobj::{Relocation, RelocationKind};
use flipwave_isa::{Encoding, Inst, Opcode, Pc, Value};
use std::collections::{BTreeSet, HashMap};

/// Compares all original instructions with the instructions at their claimed addresses. Returns all
/// splices.
pub fn check(
    context: &CheckContext<'_>,
    code: &ClaimedCode,
    findings: &mut Vec<Finding>,
) -> BTreeSet<Splice> {
    let mut splices = BTreeSet::new();
    let chains: HashMap<InstIndex, &AddressChain> = (context.program.addresses.iter())
        .flat_map(|chain| [(chain.low, chain), (chain.high, chain)])
        .collect();
    for item in code.items() {
        let Owner::Original(index) = item.owner else { continue };
        let inst = &context.program.instructions[index];
        if !is_same(context, item, inst, chains.contains_key(&index)) {
            let message = format!("found `{}`, expected `{}`", item.facts.inst, inst);
            findings.push(Finding::at(CheckRule::Original, item.pc, message).for_original(inst.pc));
            continue;
        }
        let mut add_splice = |start: u64, old: u64| {
            if let Some(to) = context.original_at(old) {
                splices.insert(Splice { start, to, from: SpliceOrigin::Flow });
            }
        };
        if item.facts.falls_through {
            add_splice(item.end(), inst.pc.0.wrapping_add(inst.size.into()));
        }
        if let (Some(new), Some(old)) = (item.facts.target(item.pc), inst.branch_target) {
            add_splice(new, old.0);
            if context.original_at(old.0).is_none() && (new != old.0 || code.is_inserted(new)) {
                let message =
                    format!("branch to {old}, which is not an instruction, is redirected");
                findings
                    .push(Finding::at(CheckRule::Control, item.pc, message).for_original(inst.pc));
            }
        }
    }
    for chain in &context.program.addresses {
        check_chain(context, code, chain, &mut splices, findings);
    }
    check_pointers(context, &mut splices, findings);
    add_old_addresses(context, &mut splices);
    entry::add_splices(context, &mut splices, findings);
    splices
}

/// Returns `true` if an instruction equals the original one, except for its branch distance or PC-relative
/// literal.
fn is_same(context: &CheckContext<'_>, item: &ClaimedInst, old: &Inst, is_address: bool) -> bool {
    let new = &item.facts.inst;
    let size = old.size.into();
    let (Some(old_bytes), Some(new_bytes)) =
        (context.original.bytes_at(old.pc, size), context.new.bytes_at(Pc(item.pc), size))
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
    is_address && differs_only_in_constants(new, old)
}

fn differs_only_in_constants(new: &Inst, old: &Inst) -> bool {
    let is_constant = |value: &Value| {
        matches!(value, Value::Integer(_) | Value::Literal(_) | Value::WideLiteral(_))
    };
    new.operation == old.operation
        && new.encoding == old.encoding
        && new.operands.len() == old.operands.len()
        && new
            .operands
            .iter()
            .zip(&old.operands)
            .all(|(new, old)| new == old || (is_constant(&new.value) && is_constant(&old.value)))
}

/// The constant that an instruction of an address chain adds.
fn constant(inst: &Inst) -> Option<u32> {
    inst.sources().find_map(|operand| match operand.value {
        Value::Integer(value) => Some(value as u32),
        Value::Literal(value) => Some(value),
        _ => None,
    })
}

/// The literal of 64 bits that an instruction of an address chain adds.
fn wide_constant(inst: &Inst) -> Option<u64> {
    inst.sources().find_map(|operand| match operand.value {
        Value::WideLiteral(value) => Some(value),
        _ => None,
    })
}

/// Adds a splice for the address that a chain computes in the new code.
fn check_chain(
    context: &CheckContext<'_>,
    code: &ClaimedCode,
    chain: &AddressChain,
    splices: &mut BTreeSet<Splice>,
    findings: &mut Vec<Finding>,
) {
    let item = |index| context.new_pc(index).and_then(|pc| code.at(pc.0));
    // Removal is only claimed on request.
    let (Some(getpc), Some(low), Some(high)) =
        (item(chain.getpc), item(chain.low), item(chain.high))
    else {
        return;
    };
    let finding = |message: String| {
        Finding::at(CheckRule::Original, getpc.pc, message)
            .for_original(context.old_pc(chain.getpc))
    };
    let distance = if chain.low == chain.high {
        wide_constant(&low.facts.inst)
    } else {
        let halves = constant(&low.facts.inst).zip(constant(&high.facts.inst));
        halves.map(|(low, high)| u64::from(high) << 32 | u64::from(low))
    };
    let Some(distance) = distance else {
        findings.push(finding("address computation without constants".to_owned()));
        return;
    };
    let new = if low.facts.opcode() == Opcode::SSub {
        getpc.end().wrapping_sub(distance)
    } else {
        getpc.end().wrapping_add(distance)
    };
    match context.original_at(chain.target.0) {
        Some(to) => _ = splices.insert(Splice { start: new, to, from: SpliceOrigin::Address }),
        None if new == chain.target.0 => {}
        None => {
            findings.push(finding(format!("address {} changed to {}", chain.target, Pc(new))));
        }
    }
}

/// Adds a splice for each old address of the functions that remain in place and have unresolved control
/// flow, because control may reach any of their instructions by its old address.
fn add_old_addresses(context: &CheckContext<'_>, splices: &mut BTreeSet<Splice>) {
    for function in
        context.program.functions.iter().filter(|function| !function.unresolved.is_empty())
    {
        if context.remains_in_place(function) {
            let splice = |to| Splice { start: context.old_pc(to).0, to, from: SpliceOrigin::Old };
            splices.extend(function.instructions.iter().map(splice));
        }
    }
}

/// Adds a splice for each code address in data, which the loader relocates.
fn check_pointers(
    context: &CheckContext<'_>,
    splices: &mut BTreeSet<Splice>,
    findings: &mut Vec<Finding>,
) {
    let value = |relocation: &Relocation| {
        let symbol = relocation.symbol.as_ref().map_or(0, |symbol| symbol.address);
        symbol.wrapping_add_signed(relocation.addend)
    };
    let is_pointer = |relocation: &&Relocation| {
        matches!(relocation.kind, RelocationKind::Relative64 | RelocationKind::Abs64)
    };
    let new: HashMap<u64, &Relocation> = (context.new.relocations().iter())
        .map(|relocation| (relocation.place, relocation))
        .collect();
    for relocation in context.original.relocations().iter().filter(is_pointer) {
        let Some(to) = context.original_at(value(relocation)) else { continue };
        match new.get(&relocation.place).filter(|new| is_pointer(new)) {
            Some(new) => {
                _ = splices.insert(Splice { start: value(new), to, from: SpliceOrigin::Address })
            }
            None => {
                let message = format!("pointer at {} is no longer relocated", Pc(relocation.place));
                findings.push(
                    Finding::at(CheckRule::Original, relocation.place, message)
                        .for_original(context.old_pc(to)),
                );
            }
        }
    }
}
