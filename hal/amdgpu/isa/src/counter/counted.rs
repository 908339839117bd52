//! The counters that each instruction increments.

use super::{Counter, Counters, Queue, StoreCounter, Waits};
use crate::{Class, Encoding, Family, Inst, Opcode};

/// Counters that an instruction increments, each with the queue that it completes in.
type Counted = &'static [(Counter, Queue)];

/// Counter and queue of vector memory, also used for flat accesses before gfx10 all of whose addresses
/// are in vector memory.
pub const VECTOR_MEMORY: Counted = &[(Counter::Vmcnt, Queue::VectorMemory)];

impl Counters {
    /// The counters that an instruction increments, each with the queue that it completes in. A flat access
    /// increments two because its addresses decide between vector memory and LDS; from gfx10 on it
    /// completes in order in both.
    pub fn incremented_by(&self, inst: &Inst) -> Counted {
        match self.waits {
            Waits::Combined { stores, .. } => combined(inst, stores),
            Waits::Separate { .. } if self.max_count(Counter::Xcnt) > 0 => translated(inst),
            Waits::Separate { .. } => separate(inst),
        }
    }

    /// Returns `true` for a vector load other than flat on generations where such loads write their
    /// registers in order, so that two of them may write the same register without a wait in between
    /// (LLVM, `FeatureVmemWriteVgprInOrder`; gfx12 lacks it, though it counts loads in order).
    pub fn is_in_order_load(&self, inst: &Inst) -> bool {
        matches!(self.waits, Waits::Combined { .. })
            && inst.class() == Class::Vmem
            && inst.encoding != Encoding::Flat
            && inst.flags.loads
            && !inst.flags.stores
    }
}

/// Counters up to gfx11.
fn combined(inst: &Inst, stores: StoreCounter) -> Counted {
    match inst.class() {
        Class::Vmem | Class::Image => vector_memory(inst, stores),
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

fn vector_memory(inst: &Inst, stores: StoreCounter) -> Counted {
    // LLVM does not count cache invalidations: nothing waits for them.
    if matches!(inst.operation.opcode(), Opcode::CacheInvalidate | Opcode::WorkgroupCacheInvalidate)
    {
        return &[];
    }
    let has_vscnt = stores == StoreCounter::Vscnt;
    let is_store = has_vscnt && is_store(inst);
    match inst.encoding {
        Encoding::Flat if is_store => {
            &[(Counter::Vscnt, Queue::Store), (Counter::Lgkmcnt, Queue::Lds)]
        }
        Encoding::Flat if has_vscnt => {
            &[(Counter::Vmcnt, Queue::VectorMemory), (Counter::Lgkmcnt, Queue::Lds)]
        }
        Encoding::Flat => &[(Counter::Vmcnt, Queue::Flat), (Counter::Lgkmcnt, Queue::Flat)],
        Encoding::Scratch if is_store => &[(Counter::Vscnt, Queue::PrivateStore)],
        _ if is_store => &[(Counter::Vscnt, Queue::Store)],
        _ => VECTOR_MEMORY,
    }
}

/// Counters from gfx12 on.
fn separate(inst: &Inst) -> Counted {
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
        Class::Image if inst.operation.is(Family::IntersectRay) => &[(Counter::Bvhcnt, Queue::Bvh)],
        Class::Image if inst.operation.is(Family::SampleImage) => {
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
            Opcode::SBarrierWritesScc => &[(Counter::Kmcnt, Queue::BarrierResult)],
            _ => &[],
        },
        _ => &[],
    }
}

/// Counters of gfx1250: those of gfx12, with translations of addresses, and moves to and from LDS.
fn translated(inst: &Inst) -> Counted {
    use Queue::{ScalarTranslation, VectorTranslation};
    if inst.operation.opcode() == Opcode::DsAtomicAsyncBarrierArrive {
        return &[(Counter::Asynccnt, Queue::AsyncLoad)];
    }
    if inst.operation.is(Family::TensorMove) {
        return &[(Counter::Tensorcnt, Queue::Tensor)];
    }
    if inst.operation.is(Family::AsyncLds) && inst.class() == Class::Vmem {
        let is_load = inst.operation.name().contains("_to_lds_");
        return if is_load {
            &[(Counter::Asynccnt, Queue::AsyncLoad)]
        } else {
            &[(Counter::Asynccnt, Queue::AsyncStore)]
        };
    }
    match separate(inst) {
        [(Counter::Loadcnt, queue)] if inst.encoding != Encoding::Flat => match queue {
            _ if !has_address(inst) => &[(Counter::Loadcnt, Queue::VectorMemory)],
            _ => &[(Counter::Loadcnt, Queue::VectorMemory), (Counter::Xcnt, VectorTranslation)],
        },
        [(Counter::Storecnt, Queue::PrivateStore)] => {
            &[(Counter::Storecnt, Queue::PrivateStore), (Counter::Xcnt, VectorTranslation)]
        }
        [(Counter::Storecnt, _)] if has_address(inst) => {
            &[(Counter::Storecnt, Queue::Store), (Counter::Xcnt, VectorTranslation)]
        }
        [(Counter::Loadcnt, _), (Counter::Dscnt, _)] => &[
            (Counter::Loadcnt, Queue::VectorMemory),
            (Counter::Dscnt, Queue::Lds),
            (Counter::Xcnt, VectorTranslation),
        ],
        [(Counter::Storecnt, _), (Counter::Dscnt, _)] => &[
            (Counter::Storecnt, Queue::Store),
            (Counter::Dscnt, Queue::Lds),
            (Counter::Xcnt, VectorTranslation),
        ],
        [(Counter::Kmcnt, Queue::ScalarMemory)] if inst.class() == Class::Smem => {
            &[(Counter::Kmcnt, Queue::ScalarMemory), (Counter::Xcnt, ScalarTranslation)]
        }
        counted => counted,
    }
}

/// Returns `true` for vector memory that accesses an address, as opposed to cache control.
fn has_address(inst: &Inst) -> bool {
    !matches!(inst.operation.opcode(), Opcode::GlobalInv | Opcode::GlobalWb)
}

/// Returns `true` for vector-memory stores and for atomics that do not return the old value.
fn is_store(inst: &Inst) -> bool {
    let returns = inst.destinations().next().is_some() || inst.modifiers.lds;
    inst.flags.stores && !returns
}

fn is_lds_direct(inst: &Inst) -> bool {
    matches!(inst.operation.opcode(), Opcode::LdsDirectLoad | Opcode::LdsParamLoad)
}
