//! Properties of instructions that the rules need, computed once for each encoding.

use flipwave_isa::counter::{Counter, Counters, Queue, WaitCounts};
use flipwave_isa::hazard::wait_states;
use flipwave_isa::{ChipBug, DecodeError, Inst, Isa, Opcode, Pc, RegisterSet, Target};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Properties of an instruction that do not depend on its address.
#[derive(Debug)]
pub struct Facts {
    /// The instruction; its `pc` and its branch target are those of its first occurrence.
    pub inst: Inst,
    /// Registers read.
    pub reads: RegisterSet,
    /// Registers written.
    pub writes: RegisterSet,
    /// Distance from the instruction to its branch target in bytes.
    pub branch: Option<i64>,
    /// Control may reach the next instruction, possibly after a call.
    pub falls_through: bool,
    /// Wait counters that the instruction increments.
    pub counted: &'static [(Counter, Queue)],
    /// Counts that the instruction waits for.
    pub waits: Option<WaitCounts>,
    /// Queues whose operations are complete after the instruction, apart from `waits`.
    pub settles: &'static [Queue],
    /// The instruction is a vector load that completes in order with other such loads.
    pub loads_in_order: bool,
    /// Wait states that the instruction takes.
    pub wait_states: u8,
    /// The hardware bug that the instruction triggers.
    pub chip_bug: Option<ChipBug>,
}

impl Facts {
    /// Computes the properties of an instruction.
    pub fn of(target: &Target, counters: Counters, inst: Inst) -> Facts {
        Facts {
            reads: inst.reads.iter().copied().collect(),
            writes: inst.writes.iter().copied().collect(),
            branch: inst.branch_target.map(|target| target.0.wrapping_sub(inst.pc.0).cast_signed()),
            falls_through: inst.control(target.generation()).may_fall_through(),
            counted: counters.incremented_by(&inst),
            waits: counters.wait_counts(&inst),
            settles: counters.completed_queues(&inst),
            loads_in_order: counters.is_in_order_load(&inst),
            wait_states: wait_states(&inst),
            chip_bug: ChipBug::of(target, &inst),
            inst,
        }
    }

    /// The opcode.
    pub fn opcode(&self) -> Opcode {
        self.inst.operation.opcode()
    }

    /// Length in bytes.
    pub fn size(&self) -> u64 {
        self.inst.size.into()
    }

    /// The branch target of the instruction at address `pc`.
    pub fn target(&self, pc: u64) -> Option<u64> {
        self.branch.map(|distance| pc.wrapping_add_signed(distance))
    }
}

/// A decoder with a cache.
///
/// The words of an instruction determine its length, so the first word identifies an instruction of
/// four bytes, and the first two words identify one of eight bytes.
pub struct FactDecoder {
    isa: Isa,
    counters: Counters,
    short: FxHashMap<[u8; 4], Arc<Facts>>,
    long: FxHashMap<[u8; 8], Arc<Facts>>,
}

impl FactDecoder {
    /// A decoder with an empty cache.
    pub fn new(isa: Isa, counters: Counters) -> FactDecoder {
        FactDecoder { isa, counters, short: FxHashMap::default(), long: FxHashMap::default() }
    }

    /// Decodes the instruction at the beginning of `bytes`, which start at address `pc`.
    pub fn decode(&mut self, bytes: &[u8], pc: u64) -> Result<Arc<Facts>, DecodeError> {
        let known = (bytes.first_chunk().and_then(|word| self.short.get(word)))
            .or_else(|| bytes.first_chunk().and_then(|words| self.long.get(words)));
        if let Some(facts) = known {
            return Ok(Arc::clone(facts));
        }
        let facts =
            Arc::new(Facts::of(self.isa.target(), self.counters, self.isa.decode(bytes, Pc(pc))?));
        match (facts.inst.size, bytes.first_chunk(), bytes.first_chunk()) {
            (4, Some(word), _) => _ = self.short.insert(*word, Arc::clone(&facts)),
            (8, _, Some(words)) => _ = self.long.insert(*words, Arc::clone(&facts)),
            _ => {}
        }
        Ok(facts)
    }
}
