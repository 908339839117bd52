//! States of the fault-free run, from which faulty runs begin.
//!
//! A faulty run is the fault-free one up to the fault. Where workgroups have nothing to do with one
//! another, it is so in all other workgroups too: then only the struck one is executed, and what it
//! touches is watched. Where that goes beyond what is its own, the whole dispatch is executed.
//!
//! What happens to memory between dispatches happens when no workgroup is under way, so that what
//! workgroups have to do with one another is not its business. It has happened in every state up to
//! the state's dispatch, and happens after that in each faulty run anew: a copy moves what the fault
//! has left.

mod alone;
mod record;
mod resume;
mod states;

pub(crate) use alone::{Alone, AloneEnd, Part};
pub(crate) use record::Recorder;
pub(crate) use resume::Attempt;

use crate::site::Event;
use flipwave_device::{Address, Statistics, WaveId};
use flipwave_sim::{EmbeddedGpu, Execution, FootprintUnion, Footprints};
use states::StatesUnderWay;
use std::collections::{BTreeMap, HashSet};

/// Saved states of a workload.
pub struct SavedStates {
    /// The dispatches that are struck, by their index.
    dispatches: BTreeMap<u32, SavedDispatch>,
}

/// What is known of one dispatch of the fault-free run.
struct SavedDispatch {
    /// The dispatch begun, and nothing of it executed. What happens to memory before it has happened.
    begun: SavedState,
    /// What it leaves behind: nothing has happened to memory since.
    ended: EmbeddedGpu,
    /// What it executes.
    statistics: Statistics,
    footprints: Footprints,
    union: FootprintUnion,
    /// Workgroups that cannot be executed alone, or need not.
    dependent: HashSet<[u32; 3]>,
    states: StatesUnderWay,
}

/// A dispatch under way.
struct SavedState {
    device: EmbeddedGpu,
    execution: Execution,
    /// Bytes of memory that are the state's own.
    written: u64,
}

/// One workgroup under way.
struct SavedWorkgroup {
    execution: Execution,
    /// What it has written so far, private memory included.
    memory: Vec<(Address, Vec<u8>)>,
}

/// The time of a site: the instructions that its wave has executed before.
#[derive(Clone, Copy)]
struct Time {
    wave: WaveId,
    executed: u64,
}

impl Time {
    /// The time of an event, if one wave is struck and it is known when.
    fn of(event: &Event, executed: Option<u64>) -> Option<Time> {
        let wave = WaveId { workgroup: event.workgroup, wave: event.wave? };
        Some(Time { wave, executed: executed? })
    }

    /// Whether it lies ahead of an execution in which the workgroup has not ended.
    fn is_ahead_of(self, execution: &Execution) -> bool {
        execution.executed(self.wave).is_none_or(|executed| executed <= self.executed)
    }
}
