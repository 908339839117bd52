//! Limits on the distance between waves of a workgroup that share LDS.

/// Most instructions that a wave may be ahead of another runnable wave of its workgroup when it begins a run of
/// LDS accesses.
///
/// Waves of a compute unit execute side by side, and programs rely on it: one refills LDS once it has
/// read what it needs of it, without a barrier, and the others have read it by then, too. A wave that is
/// further ahead therefore leaves the rest of its turn to the others. The slowest one never does, so that
/// waves that wait for each other in loops go on. Atomic operations are not held up, nor are accesses that
/// barriers order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leads {
    /// Before it writes.
    pub write: u64,
    /// Before it reads.
    pub read: u64,
}

impl Leads {
    /// The default: before a write, the others have executed as much; before a read a wave may be further
    /// ahead, as what is read was mostly written long before.
    pub const CLOSE: Leads = Leads { write: 0, read: 128 };
    /// Waves are never held up.
    pub const ANY: Leads = Leads { write: u64::MAX, read: u64::MAX };
}
