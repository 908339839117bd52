//! Finds results that need not be compared, because all of their readers are duplicated.
//!
//! If every reader of a result within its basic block is duplicated, the copies of the readers read the
//! result's shadow, and EXEC does not change in between, then a fault in the result makes the results of a
//! reader and its copy differ. Comparing those is sufficient. The shadows of such results are *kept* in
//! separate registers until the last copy has read them.

use super::duplicate::{ComparedWith, CopyRegisters, Duplicate, Pair, Shadows};
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::{Disassembly, IndexRange, InstIndex};
use flipwave_isa::{Family, Inst, Isa, Register, RegisterRange, RegisterSet, Value};
use std::collections::BTreeMap;

/// A basic block.
pub struct Block<'a> {
    /// The program.
    pub program: &'a Disassembly,
    /// The liveness of registers in the program.
    pub liveness: &'a Liveness<'a>,
    /// The instructions of the block.
    pub instructions: IndexRange<InstIndex>,
}

/// The results of a block that need not be compared, and whose shadows are kept.
pub struct Chains {
    kept: BTreeMap<InstIndex, KeptResult>,
}

/// A result whose shadow is kept.
#[derive(Clone, Copy)]
struct KeptResult {
    result: RegisterRange,
    /// The last instruction whose copy reads the shadow.
    last: InstIndex,
    /// The position of the shadow in the register pool, in words.
    position: u8,
}

impl KeptResult {
    /// The end of the shadow in the register pool, in words.
    fn end(&self) -> u8 {
        self.position + self.result.words
    }
}

impl Chains {
    /// Finds the results of a block that need not be compared if the instructions in `duplicates` are
    /// duplicated.
    pub fn new(block: &Block<'_>, duplicates: &BTreeMap<InstIndex, Duplicate>) -> Chains {
        let mut kept: BTreeMap<InstIndex, KeptResult> = BTreeMap::new();
        for at in block.instructions.iter() {
            let Some(duplicate) = duplicates.get(&at) else { continue };
            let [result] = duplicate.results[..] else { continue };
            let is_copied = |reader| duplicates.contains_key(&reader);
            let readers = block.readers(at, &duplicate.results, &is_copied);
            let Some(last) = readers.and_then(|readers| readers.last().copied()) else { continue };
            let is_taken = |position: u8| {
                let words = position..position + result.words;
                // A shadow that this copy reads must not be overwritten by it, hence `>=`.
                let overlaps = |earlier: &KeptResult| {
                    earlier.last >= at
                        && earlier.position < words.end
                        && words.start < earlier.end()
                };
                kept.values().any(overlaps)
            };
            let mut positions = (0..=u8::MAX - result.words).step_by(2);
            if let Some(position) = positions.find(|position| !is_taken(*position)) {
                kept.insert(at, KeptResult { result, last, position });
            }
        }
        Chains { kept }
    }

    /// The size of the register pool that the shadows need, in words.
    pub fn words(&self) -> u8 {
        self.kept.values().map(KeptResult::end).max().unwrap_or(0)
    }

    /// Builds the copies of the block's instructions. Shadows that fit into `pool` are kept there. Returns
    /// `None` if a copy cannot be encoded.
    pub fn duplicates(
        &self,
        block: &Block<'_>,
        isa: &Isa,
        shadows: &Shadows,
        pool: RegisterRange,
        duplicates: &BTreeMap<InstIndex, Duplicate>,
    ) -> Option<BTreeMap<InstIndex, Duplicate>> {
        let mut chained = BTreeMap::new();
        // Kept shadows whose registers have not been overwritten since.
        let mut valid: Vec<Pair> = Vec::new();
        for at in block.instructions.iter() {
            let inst = &block.program.instructions[at];
            let kept = self.kept.get(&at).filter(|kept| kept.end() <= pool.words);
            let kept = kept.and_then(|kept| {
                let first = pool.first.offset(kept.position)?;
                let shadow = RegisterRange::new(first, kept.result.words);
                Some(Pair { result: kept.result, shadow })
            });
            if duplicates.contains_key(&at) {
                let shadow = kept.map(|pair| pair.shadow);
                let registers = CopyRegisters { shadows, kept: shadow, sources: &valid };
                let compared = match shadow {
                    Some(_) => ComparedWith::Nothing,
                    None => ComparedWith::Shadow,
                };
                chained.insert(at, Duplicate::new(inst, isa, registers, compared).ok()?);
            }
            let is_overwritten =
                |pair: &Pair| inst.writes.iter().any(|range| range.overlaps(pair.result));
            valid.retain(|pair| !is_overwritten(pair));
            valid.extend(kept);
        }
        Some(chained)
    }
}

impl Block<'_> {
    /// The readers of the result of the instruction at `at`. Returns `None` if there are no readers, if the
    /// result is not in VGPRs, or if it may be read by an instruction for which `is_copied` returns `false`
    /// or whose copy cannot read the shadow.
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
        // The part of the result that has not been overwritten.
        let mut intact: RegisterSet = [result].into_iter().collect();
        let mut readers = Vec::new();
        let mut last = at;
        for reader in self.instructions.iter().filter(|reader| *reader > at) {
            let inst = &self.program.instructions[reader];
            if inst.operation.is(Family::GprIndex) || inst.operation.is(Family::Movrel) {
                return None;
            }
            if inst.reads.iter().any(|range| intact.intersects(*range)) {
                // The shadow does not have the new value of an overwritten part.
                let is_intact = intact.contains_range(result);
                if !is_intact || !is_copied(reader) || !reads_by_operands(inst, result) {
                    return None;
                }
                readers.push(reader);
            }
            let is_exec = |range: &RegisterRange| {
                range.contains(Register::ExecLo) || range.contains(Register::ExecHi)
            };
            if inst.writes.iter().any(is_exec) {
                return None;
            }
            for range in &inst.writes {
                intact = intact.difference([*range].into_iter().collect());
            }
            last = reader;
            if intact.is_empty() {
                break;
            }
        }
        let is_dead = self.liveness.after(last).any().intersection(intact).is_empty();
        (is_dead && !readers.is_empty()).then_some(readers)
    }
}

/// Returns `true` if an instruction reads a result only by explicit operands inside the result, so that a
/// copy can read the shadow instead.
fn reads_by_operands(inst: &Inst, result: RegisterRange) -> bool {
    let all: RegisterSet = [result].into_iter().collect();
    let is_inside = |range: &RegisterRange| all.contains_range(*range);
    let mut explicit: Vec<RegisterRange> = Vec::new();
    for operand in inst.sources() {
        if let Value::Register(range) = operand.value {
            explicit.push(range);
        }
    }
    if inst.flags.tied
        && let Some(destination) = inst.destinations().next()
        && let Value::Register(range) = destination.value
    {
        explicit.push(range);
    }
    let named: RegisterSet = explicit.iter().copied().collect();
    let overlapping = |range: &&RegisterRange| all.intersects(**range);
    explicit.iter().filter(overlapping).all(is_inside)
        && inst.reads.iter().filter(overlapping).all(|range| named.contains_range(*range))
}
