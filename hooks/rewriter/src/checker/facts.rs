//! Instructions with what the rules ask of them, decoded once for each encoding.

use flipwave_isa::counter::{Counter, Counters, Queue, WaitCounts};
use flipwave_isa::hazard::wait_states;
use flipwave_isa::{ChipBug, DecodeError, Inst, Isa, Opcode, Pc, RegisterSet, Target};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What the rules ask of an instruction, wherever it stands.
#[derive(Debug)]
pub struct Facts {
    /// The instruction; its `pc` and its branch target are those of its first occurrence.
    pub inst: Inst,
    /// Registers read.
    pub reads: RegisterSet,
    /// Registers written.
    pub writes: RegisterSet,
    /// Where it branches to, in bytes from its own address.
    pub branch: Option<i64>,
    /// Whether control may reach the instruction after it, calls included.
    pub falls_through: bool,
    /// Counters it counts in.
    pub counted: &'static [(Counter, Queue)],
    /// What it waits for.
    pub waits: Option<WaitCounts>,
    /// What it proves to have come back besides.
    pub settles: Option<Queue>,
    /// A vector load that may follow another one into the same registers.
    pub loads_in_order: bool,
    /// Wait states it takes.
    pub wait_states: u8,
    /// The hardware bug that it triggers.
    pub chip_bug: Option<ChipBug>,
}

impl Facts {
    /// The facts of an instruction of a target.
    pub fn of(target: &Target, counters: Counters, inst: Inst) -> Facts {
        Facts {
            reads: inst.reads.iter().copied().collect(),
            writes: inst.writes.iter().copied().collect(),
            branch: inst.branch_target.map(|target| target.0.wrapping_sub(inst.pc.0).cast_signed()),
            falls_through: inst.control(target.generation()).may_fall_through(),
            counted: counters.incremented_by(&inst),
            waits: counters.wait_counts(&inst),
            settles: counters.completed_queue(&inst),
            loads_in_order: counters.is_in_order_load(&inst),
            wait_states: wait_states(&inst),
            chip_bug: ChipBug::of(target, &inst),
            inst,
        }
    }

    /// Which operation it is.
    pub fn opcode(&self) -> Opcode {
        self.inst.operation.opcode()
    }

    /// Length in bytes.
    pub fn size(&self) -> u64 {
        self.inst.size.into()
    }

    /// Where it branches to when it stands at `pc`.
    pub fn target(&self, pc: u64) -> Option<u64> {
        self.branch.map(|distance| pc.wrapping_add_signed(distance))
    }
}

/// A decoder that remembers.
///
/// The words that an instruction has decide how many it has, so one of four bytes is known by its
/// first word whatever follows, and one of eight by its first two.
pub struct FactDecoder {
    isa: Isa,
    counters: Counters,
    short: FxHashMap<[u8; 4], Arc<Facts>>,
    long: FxHashMap<[u8; 8], Arc<Facts>>,
}

impl FactDecoder {
    /// A decoder that remembers nothing yet.
    pub fn new(isa: Isa, counters: Counters) -> FactDecoder {
        FactDecoder { isa, counters, short: FxHashMap::default(), long: FxHashMap::default() }
    }

    /// The instruction at the beginning of `bytes`, which lie at `pc`.
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
