//! Which instructions count in which counters.

use super::{Counter, Counters, Queue, Waits};
use crate::{Class, Encoding, Family, Inst, Opcode};

/// The counters of an instruction, and the queue that it comes back through in each.
type Counted = &'static [(Counter, Queue)];

/// The counter of vector memory, and of flat accesses before gfx10 that all go to vector memory.
pub const VECTOR_MEMORY: Counted = &[(Counter::Vmcnt, Queue::VectorMemory)];

impl Counters {
    /// The counters that an instruction increments, and the queue it comes back through. A flat
    /// access counts in two, since its addresses decide which way it goes; from gfx10 on it comes back
    /// in order with both.
    pub fn counted(&self, inst: &Inst) -> Counted {
        match self.waits {
            Waits::Together { counts_stores, .. } => counted_together(inst, counts_stores),
            Waits::Apart => counted_apart(inst),
        }
    }

    /// Whether an instruction is a vector load whose way is known, where such loads write their
    /// registers in order, so that one may follow another into the same ones (LLVM,
    /// `FeatureVmemWriteVgprInOrder`: not on gfx12, though it counts them in order).
    pub fn loads_in_order(&self, inst: &Inst) -> bool {
        matches!(self.waits, Waits::Together { .. })
            && inst.class() == Class::Vmem
            && inst.encoding != Encoding::Flat
            && inst.flags.loads
            && !inst.flags.stores
    }
}

/// Up to gfx11.
fn counted_together(inst: &Inst, counts_stores: bool) -> Counted {
    match inst.class() {
        Class::Vmem | Class::Image => vector_memory(inst, counts_stores),
        _ if is_lds_direct(inst) => &[(Counter::Expcnt, Queue::LdsDirect)],
        Class::Lds if inst.modifiers.gds => {
            &[(Counter::Lgkmcnt, Queue::GlobalDataShare), (Counter::Expcnt, Queue::GlobalDataShare)]
        }
        Class::Lds => &[(Counter::Lgkmcnt, Queue::Lds)],
        Class::Smem => &[(Counter::Lgkmcnt, Queue::ScalarMemory)],
        Class::Message if inst.operation.is(Family::SendMessage) => {
            &[(Counter::Lgkmcnt, Queue::Message)]
        }
        _ => &[],
    }
}

fn vector_memory(inst: &Inst, counts_stores: bool) -> Counted {
    // LLVM does not count them: nothing waits for them.
    if matches!(inst.operation.opcode(), Opcode::CacheInvalidate | Opcode::WorkgroupCacheInvalidate)
    {
        return &[];
    }
    let is_store = counts_stores && is_store(inst);
    match inst.encoding {
        Encoding::Flat if is_store => {
            &[(Counter::Vscnt, Queue::Store), (Counter::Lgkmcnt, Queue::Lds)]
        }
        Encoding::Flat if counts_stores => {
            &[(Counter::Vmcnt, Queue::VectorMemory), (Counter::Lgkmcnt, Queue::Lds)]
        }
        Encoding::Flat => &[(Counter::Vmcnt, Queue::Flat), (Counter::Lgkmcnt, Queue::Flat)],
        Encoding::Scratch if is_store => &[(Counter::Vscnt, Queue::PrivateStore)],
        _ if is_store => &[(Counter::Vscnt, Queue::Store)],
        _ => VECTOR_MEMORY,
    }
}

/// From gfx12 on.
fn counted_apart(inst: &Inst) -> Counted {
    match inst.class() {
        Class::Vmem => match inst.operation.opcode() {
            Opcode::GlobalInv => &[(Counter::Loadcnt, Queue::VectorMemory)],
            Opcode::GlobalWb => &[(Counter::Storecnt, Queue::Store)],
            _ => match (inst.encoding, is_store(inst)) {
                (Encoding::Flat, true) => {
                    &[(Counter::Storecnt, Queue::Store), (Counter::Dscnt, Queue::Lds)]
                }
                (Encoding::Flat, false) => {
                    &[(Counter::Loadcnt, Queue::VectorMemory), (Counter::Dscnt, Queue::Lds)]
                }
                (Encoding::Scratch, true) => &[(Counter::Storecnt, Queue::PrivateStore)],
                (_, true) => &[(Counter::Storecnt, Queue::Store)],
                (_, false) => &[(Counter::Loadcnt, Queue::VectorMemory)],
            },
        },
        Class::Image if inst.operation.is(Family::IntersectsRays) => {
            &[(Counter::Bvhcnt, Queue::Bvh)]
        }
        Class::Image if inst.operation.is(Family::SamplesImage) => {
            &[(Counter::Samplecnt, Queue::Sample)]
        }
        Class::Image if is_store(inst) => &[(Counter::Storecnt, Queue::Store)],
        Class::Image => &[(Counter::Loadcnt, Queue::VectorMemory)],
        _ if is_lds_direct(inst) => &[(Counter::Expcnt, Queue::LdsDirect)],
        Class::Lds => &[(Counter::Dscnt, Queue::Lds)],
        Class::Smem => &[(Counter::Kmcnt, Queue::ScalarMemory)],
        Class::Message if inst.operation.is(Family::SendMessage) => {
            &[(Counter::Kmcnt, Queue::Message)]
        }
        Class::Barrier => match inst.operation.opcode() {
            Opcode::SGetBarrierState => &[(Counter::Kmcnt, Queue::ScalarMemory)],
            Opcode::SBarrierAnswers => &[(Counter::Kmcnt, Queue::Barrier)],
            _ => &[],
        },
        _ => &[],
    }
}

/// Vector memory that stores, or modifies and returns nothing.
fn is_store(inst: &Inst) -> bool {
    let returns = inst.destinations().next().is_some() || inst.modifiers.lds;
    inst.flags.stores && !returns
}

fn is_lds_direct(inst: &Inst) -> bool {
    matches!(inst.operation.opcode(), Opcode::LdsDirectLoad | Opcode::LdsParamLoad)
}
