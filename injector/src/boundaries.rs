//! The device between dispatches of the fault-free run.

use crate::{Golden, Workload};
use flipwave_sim::{EmbeddedGpu, Footprints};
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
    bytes: u64,
}

impl BoundaryKeeper {
    /// Bytes of the host that all of them take at most, about.
    const MOST_BYTES: u64 = 1 << 30;

    /// Bytes of the host that a device takes for each allocation that it shares with others, about.
    const ALLOCATION: u64 = 64;

    /// Keeps a boundary, whose dispatch touches what `footprints` says; whether there is room for it.
    pub fn keep(&mut self, index: u32, boundary: Boundary, footprints: &Footprints) -> bool {
        let allocations = boundary.after.allocations().count() as u64;
        self.bytes += footprints.bytes_copied() + 2 * allocations * BoundaryKeeper::ALLOCATION;
        self.dispatches.insert(index, boundary);
        self.bytes <= BoundaryKeeper::MOST_BYTES
    }

    /// Those of a run.
    pub fn into_boundaries(self, golden: Golden) -> Boundaries {
        Boundaries { golden, dispatches: self.dispatches }
    }
}

impl Boundary {
    /// Runs a dispatch between the states that the device had before and after it.
    pub fn of<T>(
        device: &mut EmbeddedGpu,
        run: impl FnOnce(&mut EmbeddedGpu) -> T,
    ) -> (Boundary, T) {
        device.share_memory();
        let before = device.clone();
        let result = run(device);
        device.share_memory();
        (Boundary { before, after: device.clone() }, result)
    }

    /// The same on devices that execute as faulty runs do: their policy is the workload's own.
    pub fn of_faulty_runs(mut self, workload: &Workload) -> Boundary {
        let policy = workload.device.policy();
        self.before.set_policy(policy);
        self.after.set_policy(policy);
        self
    }
}
