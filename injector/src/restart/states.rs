//! How many states are kept, and how far apart they lie.

use super::{SavedDispatch, SavedState, SavedWorkgroup};
use flipwave_sim::{EmbeddedGpu, Execution};

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

/// What the states take that are kept, in bytes.
pub(super) struct StateCount {
    bytes: u64,
    most: u64,
}

impl StateCount {
    /// None yet, and at most so many.
    pub fn new(most: u64) -> StateCount {
        StateCount { bytes: 0, most }
    }

    pub fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub fn is_too_much(&self) -> bool {
        self.bytes > self.most
    }

    /// Keeps every other state, in the order of dispatches, workgroups and time.
    pub fn thin<'a>(&mut self, dispatches: impl Iterator<Item = &'a mut SavedDispatch>) {
        let (mut number, mut bytes) = (0u64, 0u64);
        let mut keeps = |own: u64| {
            number += 1;
            let is_kept = number.is_multiple_of(2);
            bytes += if is_kept { own } else { 0 };
            is_kept
        };
        for dispatch in dispatches {
            for states in dispatch.workgroups.values_mut() {
                states.retain(|state| keeps(state.bytes()));
            }
            dispatch.whole.retain(|state| keeps(state.bytes()));
        }
        self.bytes = bytes;
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
