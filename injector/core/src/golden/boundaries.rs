//! The device between dispatches of the fault-free run.

use crate::{Golden, Workload};
use flipwave_sim::EmbeddedGpu;
use std::collections::BTreeMap;

/// The fault-free run, and the device before and after each dispatch that faults can strike. From there
/// such a dispatch can be executed again without those before it.
#[derive(Clone, Debug)]
pub struct Boundaries {
    pub(crate) golden: Golden,
    pub(crate) dispatches: BTreeMap<u32, Boundary>,
}

/// The device before a dispatch and after it. Clones share the memory that dispatches do not write.
#[derive(Clone, Debug)]
pub(crate) struct Boundary {
    /// What happens to memory before the dispatch has happened.
    pub before: EmbeddedGpu,
    /// Nothing has happened to memory since.
    pub after: EmbeddedGpu,
}

/// Keeps them while the workload runs, as long as they do not take too much memory.
#[derive(Default)]
pub(crate) struct BoundaryKeeper {
    dispatches: BTreeMap<u32, Boundary>,
    /// Bytes of the host that they take.
    bytes: u64,
}

impl BoundaryKeeper {
    /// Bytes of the host that all of them take at most, but for the last one.
    const MOST_BYTES: u64 = 1 << 30;

    /// Keeps the boundary of a dispatch after those that are kept; whether there is room for another one.
    pub fn keep(&mut self, index: u32, boundary: Boundary) -> bool {
        let Boundary { before, after } = &boundary;
        let last = self.dispatches.last_key_value().map_or(before, |(_, own)| &own.after);
        self.bytes += before.added_host_bytes(last) + after.added_host_bytes(before);
        self.dispatches.insert(index, boundary);
        self.bytes <= BoundaryKeeper::MOST_BYTES
    }

    /// Those of a run.
    pub fn into_boundaries(self, golden: Golden) -> Boundaries {
        Boundaries { golden, dispatches: self.dispatches }
    }
}

impl Boundary {
    /// The same on devices that execute as faulty runs do: their policy is the workload's own.
    pub fn of_faulty_runs(mut self, workload: &Workload) -> Boundary {
        let policy = workload.device.policy();
        self.before.set_policy(policy);
        self.after.set_policy(policy);
        self
    }
}
