//! Checkpoints of the golden run, from which faulty runs start.
//!
//! Up to the fault, a faulty run equals the golden run. If workgroups are independent, all workgroups
//! other than the struck one equal the golden run, too: then only the struck workgroup is executed, and
//! its memory accesses are recorded. If it touches memory of other workgroups, the whole dispatch is
//! executed instead.
//!
//! The host changes memory only between dispatches, when no workgroup is running, so such changes do
//! not affect the independence of workgroups. A checkpoint contains all changes up to its dispatch;
//! each faulty run applies the later changes again, because a copy moves data that the fault may have
//! corrupted.

mod alone;
mod record;
mod resume;
mod store;

pub(crate) use alone::{Alone, AloneEnd, Part};
pub(crate) use record::Recorder;
pub(crate) use resume::Attempt;

use crate::site::Event;
use flipwave_device::{Address, Statistics, WaveId};
use flipwave_machine::{Execution, FootprintUnion, Footprints, Simulator};
use std::collections::{BTreeMap, HashSet};
use store::InnerCheckpoints;

/// Checkpoints of a workload.
pub struct Checkpoints {
    /// Dispatches with faults, by index.
    dispatches: BTreeMap<u32, CheckpointedDispatch>,
}

/// Checkpoints of one dispatch of the golden run.
struct CheckpointedDispatch {
    /// The dispatch at its begin, before its first instruction and after the host's preceding memory
    /// changes.
    begun: Checkpoint,
    /// The device after the dispatch, before any memory change by the host.
    ended: Simulator,
    /// Instruction counts of the dispatch.
    statistics: Statistics,
    footprints: Footprints,
    union: FootprintUnion,
    /// Workgroups that cannot be executed alone, or that are too large to be worth it.
    dependent: HashSet<[u32; 3]>,
    checkpoints: InnerCheckpoints,
}

/// A checkpoint of a running dispatch.
struct Checkpoint {
    device: Simulator,
    execution: Execution,
    /// Bytes of memory not shared with other checkpoints.
    written: u64,
}

/// A checkpoint of one running workgroup.
struct WorkgroupCheckpoint {
    execution: Execution,
    /// Memory that the workgroup has written so far, including private memory.
    memory: Vec<(Address, Vec<u8>)>,
}

/// The time of a site: the number of instructions that its wave has executed before.
#[derive(Clone, Copy)]
struct Time {
    wave: WaveId,
    executed: u64,
}

impl Time {
    /// The time of an event, if the event strikes one wave and its time is known.
    fn of(event: &Event, executed: Option<u64>) -> Option<Time> {
        let wave = WaveId { workgroup: event.workgroup, wave: event.wave? };
        Some(Time { wave, executed: executed? })
    }

    /// Returns `true` if an execution, in which the workgroup has not ended, has not passed this time.
    fn is_ahead_of(self, execution: &Execution) -> bool {
        execution.executed(self.wave).is_none_or(|executed| executed <= self.executed)
    }
}
