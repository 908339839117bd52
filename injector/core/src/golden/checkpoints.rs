//! Device checkpoints around the dispatches of the golden run.

use crate::{Golden, Workload};
use flipwave_machine::{FaultDetail, Simulator};
use std::collections::BTreeMap;

/// The golden run with device checkpoints before and after each dispatch that faults can hit. Such a
/// dispatch can be executed again without the dispatches before it.
#[derive(Clone, Debug)]
pub struct DispatchCheckpoints {
    pub(crate) golden: Golden,
    pub(crate) dispatches: BTreeMap<u32, DispatchCheckpoint>,
}

/// Device checkpoints before and after a dispatch. Clones share the memory that dispatches do not
/// write.
#[derive(Clone, Debug)]
pub(crate) struct DispatchCheckpoint {
    /// The device right before the dispatch, with the host's memory changes for this dispatch applied.
    pub before: Simulator,
    /// The device right after the dispatch, before any memory change by the host.
    pub after: Simulator,
}

/// Collects the checkpoints of a golden run while they fit into a memory budget.
#[derive(Default)]
pub(crate) struct CheckpointCollector {
    dispatches: BTreeMap<u32, DispatchCheckpoint>,
    /// Host bytes used by the checkpoints.
    bytes: u64,
}

impl CheckpointCollector {
    /// Maximum host bytes of all checkpoints except the last one.
    const MOST_BYTES: u64 = 1 << 30;

    /// Stores the checkpoints of the next dispatch. Returns `true` while there is room for more.
    pub fn keep(&mut self, index: u32, checkpoint: DispatchCheckpoint) -> bool {
        let DispatchCheckpoint { before, after } = &checkpoint;
        let last = self.dispatches.last_key_value().map_or(before, |(_, previous)| &previous.after);
        self.bytes += before.added_host_bytes(last) + after.added_host_bytes(before);
        self.dispatches.insert(index, checkpoint);
        self.bytes <= CheckpointCollector::MOST_BYTES
    }

    /// Combines the collected checkpoints with the golden run they belong to.
    pub fn into_checkpoints(self, golden: Golden) -> DispatchCheckpoints {
        DispatchCheckpoints { golden, dispatches: self.dispatches }
    }
}

impl DispatchCheckpoint {
    /// Returns the checkpoints for faulty runs: with the workload's treatment of stalls, and without
    /// details of faults, which are only counted.
    pub fn of_faulty_runs(mut self, workload: &Workload) -> DispatchCheckpoint {
        let stalls = workload.device.stalls();
        for device in [&mut self.before, &mut self.after] {
            device.set_stalls(stalls);
            device.set_fault_detail(FaultDetail::Cause);
        }
        self
    }
}
