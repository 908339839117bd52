//! Limits on the distance between waves of a workgroup that share LDS.

/// Maximum number of instructions that a wave may be ahead of another runnable wave of its
/// workgroup when it begins a run of LDS accesses.
///
/// Waves of a compute unit execute concurrently, and programs rely on it: without a barrier, a wave
/// refills LDS once it has read what it needs, assuming that the others have read it by then. A
/// wave that is further ahead therefore ends its turn early. The slowest wave never does, so that
/// waves that wait for each other in loops progress. Atomic operations, and accesses that barriers
/// order, do not end turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leads {
    /// Maximum lead before writes.
    pub write: u64,
    /// Maximum lead before reads.
    pub read: u64,
}

impl Leads {
    /// The default: no lead before a write; some before a read, since what is read was mostly
    /// written long before.
    pub const CLOSE: Leads = Leads { write: 0, read: 128 };
    /// Unlimited leads.
    pub const ANY: Leads = Leads { write: u64::MAX, read: u64::MAX };
}
