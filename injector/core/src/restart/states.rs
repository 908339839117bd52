//! How many states are kept, and how far apart they lie.

use super::{SavedState, SavedWorkgroup};
use flipwave_device::Dim3;
use flipwave_sim::{EmbeddedGpu, Execution};
use std::collections::BTreeMap;

/// Workgroups saved under way, in all dispatches together.
const WORKGROUP_STATES: u64 = 256;

/// Dispatches saved under way, in all together.
const WHOLE_STATES: u64 = 32;

/// States of one dispatch under way.
#[derive(Default)]
pub(super) struct StatesUnderWay {
    /// Of workgroups by position, each in the order of time.
    pub workgroups: BTreeMap<Dim3, Vec<SavedWorkgroup>>,
    /// Of the whole dispatch, in the order of time.
    pub whole: Vec<SavedState>,
}

impl StatesUnderWay {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.workgroups.values().map(Vec::len).sum::<usize>() + self.whole.len()
    }
}

/// Keeps states in not more memory than they may take: where they take more, every other one is kept.
pub(super) struct Keeper {
    /// By the index of the dispatch.
    dispatches: BTreeMap<u32, StatesUnderWay>,
    pub workgroups: Interval,
    pub whole: Interval,
    /// Bytes of the states that are kept.
    bytes: u64,
    most_bytes: u64,
}

impl Keeper {
    /// None yet of a run of `total` wave instructions.
    pub fn new(total: u64, most_bytes: u64) -> Keeper {
        Keeper {
            dispatches: BTreeMap::new(),
            workgroups: Interval::of(total, WORKGROUP_STATES),
            whole: Interval::of(total, WHOLE_STATES),
            bytes: 0,
            most_bytes,
        }
    }

    /// Keeps a workgroup of a dispatch.
    pub fn keep_workgroup(&mut self, dispatch: u32, position: Dim3, state: SavedWorkgroup) {
        self.bytes = self.bytes.saturating_add(state.bytes());
        let own = self.dispatches.entry(dispatch).or_default();
        own.workgroups.entry(position).or_default().push(state);
        self.thin();
    }

    /// Keeps a dispatch.
    pub fn keep_whole(&mut self, dispatch: u32, state: SavedState) {
        self.bytes = self.bytes.saturating_add(state.bytes());
        self.dispatches.entry(dispatch).or_default().whole.push(state);
        self.thin();
    }

    /// Takes out the states of a dispatch.
    pub fn take(&mut self, dispatch: u32) -> StatesUnderWay {
        self.dispatches.remove(&dispatch).unwrap_or_default()
    }

    /// Keeps every other state, in the order of dispatches, workgroups and time, until there are not too
    /// many.
    fn thin(&mut self) {
        while self.bytes > self.most_bytes {
            let (mut number, mut bytes) = (0u64, 0u64);
            let mut keeps = |own: u64| {
                number += 1;
                let is_kept = number.is_multiple_of(2);
                bytes += if is_kept { own } else { 0 };
                is_kept
            };
            for dispatch in self.dispatches.values_mut() {
                for states in dispatch.workgroups.values_mut() {
                    states.retain(|state| keeps(state.bytes()));
                }
                dispatch.whole.retain(|state| keeps(state.bytes()));
            }
            self.bytes = bytes;
            self.workgroups.double();
            self.whole.double();
        }
    }
}

/// Where states are saved: whenever so many wave instructions of a dispatch have been executed again.
pub(super) struct Interval {
    interval: u64,
    next: u64,
}

impl Interval {
    /// This many states in a run of `total` wave instructions.
    pub fn of(total: u64, states: u64) -> Interval {
        let interval = (total / states).max(1);
        Interval { interval, next: interval }
    }

    /// A dispatch begins.
    pub fn begin(&mut self) {
        self.next = self.interval;
    }

    /// Where the next state is saved, in wave instructions of the dispatch.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// How far states are apart, in wave instructions.
    pub fn length(&self) -> u64 {
        self.interval
    }

    /// Whether a state is to be saved now; the next one is further on then.
    pub fn has_come(&mut self, executed: u64) -> bool {
        let has_come = executed >= self.next;
        if has_come {
            self.next = executed.saturating_add(self.interval);
        }
        has_come
    }

    /// From now on there are half as many.
    pub fn double(&mut self) {
        self.interval = self.interval.saturating_mul(2);
    }
}

impl SavedState {
    /// Wave instructions that the dispatch has executed.
    pub fn executed(&self) -> u64 {
        self.execution.statistics().wave_instructions
    }

    /// Whether a run of the same dispatch goes on from here as the saved one does.
    pub fn is_state_of(&self, device: &EmbeddedGpu, execution: &Execution) -> bool {
        execution.goes_on_as(&self.execution) && device.is_in_state_of(&self.device)
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> u64 {
        self.execution.state_bytes() + self.written
    }
}

impl SavedWorkgroup {
    /// Bytes that it takes.
    pub fn bytes(&self) -> u64 {
        let memory: usize = self.memory.iter().map(|(_, bytes)| bytes.len()).sum();
        self.execution.state_bytes() + memory as u64
    }
}
