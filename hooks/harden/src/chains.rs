//! Results that need not be compared, since only copies read them.
//!
//! Within a basic block, as long as EXEC is the same: where every instruction that reads a result is
//! executed twice, and its copy reads the result's shadow, a fault in the result makes what is computed
//! of it differ from what its copy computes. The comparison of that is enough. Shadows of such results
//! are *kept*, in registers of their own, until the last copy has read them.

use crate::duplicate::{ComparedWith, CopyRegisters, Duplicate, Shadows};
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::{Disassembly, IndexRange, InstIndex};
use flipwave_isa::{Family, Inst, Isa, Register, RegisterRange, RegisterSet, Value};
use std::collections::BTreeMap;

/// A basic block.
pub struct Block<'a> {
    /// The code.
    pub program: &'a Disassembly,
    /// What is live in it.
    pub liveness: &'a Liveness<'a>,
    /// The block's instructions.
    pub instructions: IndexRange<InstIndex>,
}

/// Results of a block whose shadows are kept.
pub struct Chains {
    kept: BTreeMap<InstIndex, Kept>,
}

/// A result whose shadow is kept.
#[derive(Clone, Copy)]
struct Kept {
    result: RegisterRange,
    /// The last instruction whose copy reads it.
    last: InstIndex,
    /// Where its shadow begins, in words of the pool.
    place: u8,
}

impl Chains {
    /// The results of a block that need not be compared, where those of `duplicates` are executed twice.
    pub fn new(block: &Block<'_>, duplicates: &BTreeMap<InstIndex, Duplicate>) -> Chains {
        let mut kept: BTreeMap<InstIndex, Kept> = BTreeMap::new();
        for at in block.instructions.iter() {
            let Some(duplicate) = duplicates.get(&at) else { continue };
            let [result] = duplicate.results[..] else { continue };
            let is_copied = |reader| duplicates.contains_key(&reader);
            let readers = block.readers(at, &duplicate.results, &is_copied);
            let Some(last) = readers.and_then(|own| own.last().copied()) else { continue };
            let taken = |place: u8| {
                let words = place..place + result.words;
                // What the copy reads itself is still there when it writes.
                let meets = |own: &Kept| {
                    own.last >= at
                        && own.place < words.end
                        && words.start < own.place + own.result.words
                };
                kept.values().any(meets)
            };
            let place = (0..=u8::MAX - result.words).step_by(2).find(|place| !taken(*place));
            if let Some(place) = place {
                kept.insert(at, Kept { result, last, place });
            }
        }
        Chains { kept }
    }

    /// Words that the shadows take.
    pub fn words(&self) -> u8 {
        self.kept.values().map(|own| own.place + own.result.words).max().unwrap_or(0)
    }

    /// The copies of the block's instructions, with shadows in `pool` as far as it reaches; nothing where one
    /// cannot be encoded.
    pub fn duplicates(
        &self,
        block: &Block<'_>,
        isa: &Isa,
        shadows: &Shadows,
        pool: RegisterRange,
        duplicates: &BTreeMap<InstIndex, Duplicate>,
    ) -> Option<BTreeMap<InstIndex, Duplicate>> {
        let mut chained = BTreeMap::new();
        // Shadows that hold what the program's registers are to hold.
        let mut valid: Vec<(RegisterRange, RegisterRange)> = Vec::new();
        for at in block.instructions.iter() {
            let inst = &block.program.instructions[at];
            let kept = self.kept.get(&at).filter(|own| own.place + own.result.words <= pool.words);
            let kept = kept.and_then(|own| {
                let first = pool.first.offset(own.place)?;
                Some((own.result, RegisterRange::new(first, own.result.words)))
            });
            if duplicates.contains_key(&at) {
                let shadow = kept.map(|(_, shadow)| shadow);
                let registers = CopyRegisters { shadows, kept: shadow, sources: &valid };
                let compared = match shadow {
                    Some(_) => ComparedWith::Nothing,
                    None => ComparedWith::Shadow,
                };
                chained.insert(at, Duplicate::new(inst, isa, registers, compared).ok()?);
            }
            valid.retain(|(result, _)| !inst.writes.iter().any(|own| own.overlaps(*result)));
            valid.extend(kept);
        }
        Some(chained)
    }
}

impl Block<'_> {
    /// The instructions that read the result of the one at `at`, VGPRs, where only such read it as
    /// `is_copied`, and their copies can read its shadow. Nothing where others may read it, or nobody does.
    pub fn readers(
        &self,
        at: InstIndex,
        results: &[RegisterRange],
        is_copied: &dyn Fn(InstIndex) -> bool,
    ) -> Option<Vec<InstIndex>> {
        let [result] = *results else { return None };
        if !matches!(result.first, Register::Vgpr(_)) {
            return None;
        }
        let mut left: RegisterSet = [result].into_iter().collect();
        let mut readers = Vec::new();
        let mut before = at;
        for reader in self.instructions.iter().filter(|own| *own > at) {
            let inst = &self.program.instructions[reader];
            if inst.operation.is(Family::GprIndex) || inst.operation.is(Family::Movrel) {
                return None;
            }
            if inst.reads.iter().any(|own| left.intersects(*own)) {
                // What is overwritten in part is not there as a whole.
                let is_whole = left.contains_range(result);
                if !is_whole || !is_copied(reader) || !reads_whole(inst, result) {
                    return None;
                }
                readers.push(reader);
            }
            let is_exec = |own: &RegisterRange| {
                own.contains(Register::ExecLo) || own.contains(Register::ExecHi)
            };
            if inst.writes.iter().any(is_exec) {
                return None;
            }
            inst.writes.iter().for_each(|own| left = left.difference([*own].into_iter().collect()));
            before = reader;
            if left.is_empty() {
                break;
            }
        }
        let is_dead = self.liveness.after(before).any().intersection(left).is_empty();
        (is_dead && !readers.is_empty()).then_some(readers)
    }
}

/// Whether all that an instruction reads of a result, it reads by operands that lie in it, which its copy
/// can read in the result's shadow.
fn reads_whole(inst: &Inst, result: RegisterRange) -> bool {
    let all: RegisterSet = [result].into_iter().collect();
    let is_inside = |range: &RegisterRange| all.contains_range(*range);
    let mut explicit: Vec<RegisterRange> = Vec::new();
    for operand in inst.sources() {
        if let Value::Register(range) = operand.value {
            explicit.push(range);
        }
    }
    if inst.flags.tied
        && let Some(Value::Register(added)) = inst.destinations().next().map(|own| &own.value)
    {
        explicit.push(*added);
    }
    let overlapping = |range: &&RegisterRange| all.intersects(**range);
    explicit.iter().filter(overlapping).all(is_inside)
        && inst.reads.iter().filter(overlapping).all(|own| {
            let named: RegisterSet = explicit.iter().copied().collect();
            named.contains_range(*own)
        })
}
