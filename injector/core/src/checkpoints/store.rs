//! Number and spacing of checkpoints.

use super::{Checkpoint, WorkgroupCheckpoint};
use flipwave_device::Dim3;
use flipwave_machine::{Execution, Simulator};
use std::collections::BTreeMap;

/// Maximum number of workgroup checkpoints in all dispatches together.
const WORKGROUP_STATES: u64 = 256;

/// Maximum number of whole-dispatch checkpoints in all dispatches together.
const WHOLE_STATES: u64 = 32;

/// Checkpoints inside one dispatch.
#[derive(Default)]
pub(super) struct InnerCheckpoints {
    /// Checkpoints of single workgroups by position, in order of time.
    pub workgroups: BTreeMap<Dim3, Vec<WorkgroupCheckpoint>>,
    /// Checkpoints of the whole dispatch, in order of time.
    pub whole: Vec<Checkpoint>,
}

impl InnerCheckpoints {
    /// Number of checkpoints.
    pub fn count(&self) -> usize {
        self.workgroups.values().map(Vec::len).sum::<usize>() + self.whole.len()
    }
}

/// Stores checkpoints within a memory budget; when it is exceeded, every other checkpoint is dropped.
pub(super) struct CheckpointStore {
    /// Checkpoints by index of the dispatch.
    dispatches: BTreeMap<u32, InnerCheckpoints>,
    pub workgroups: Interval,
    pub whole: Interval,
    /// Bytes of the stored checkpoints.
    bytes: u64,
    most_bytes: u64,
}

impl CheckpointStore {
    /// Creates an empty store for a run of `total` wave instructions.
    pub fn new(total: u64, most_bytes: u64) -> CheckpointStore {
        CheckpointStore {
            dispatches: BTreeMap::new(),
            workgroups: Interval::of(total, WORKGROUP_STATES),
            whole: Interval::of(total, WHOLE_STATES),
            bytes: 0,
            most_bytes,
        }
    }

    /// Stores a checkpoint of a workgroup.
    pub fn keep_workgroup(&mut self, dispatch: u32, position: Dim3, state: WorkgroupCheckpoint) {
        self.bytes = self.bytes.saturating_add(state.bytes());
        let checkpoints = self.dispatches.entry(dispatch).or_default();
        checkpoints.workgroups.entry(position).or_default().push(state);
        self.thin();
    }

    /// Stores a checkpoint of a whole dispatch.
    pub fn keep_whole(&mut self, dispatch: u32, state: Checkpoint) {
        self.bytes = self.bytes.saturating_add(state.bytes());
        self.dispatches.entry(dispatch).or_default().whole.push(state);
        self.thin();
    }

    /// Removes and returns the checkpoints of a dispatch.
    pub fn take(&mut self, dispatch: u32) -> InnerCheckpoints {
        self.dispatches.remove(&dispatch).unwrap_or_default()
    }

    /// Drops every other checkpoint, in the order of dispatches, workgroups and time, until the budget
    /// is kept.
    fn thin(&mut self) {
        while self.bytes > self.most_bytes {
            let (mut number, mut bytes) = (0u64, 0u64);
            let mut keeps = |size: u64| {
                number += 1;
                let is_kept = number.is_multiple_of(2);
                bytes += if is_kept { size } else { 0 };
                is_kept
            };
            for dispatch in self.dispatches.values_mut() {
                for checkpoints in dispatch.workgroups.values_mut() {
                    checkpoints.retain(|state| keeps(state.bytes()));
                }
                dispatch.whole.retain(|state| keeps(state.bytes()));
            }
            self.bytes = bytes;
            self.workgroups.double();
            self.whole.double();
        }
    }
}

/// Distance between checkpoints, in wave instructions of a dispatch.
pub(super) struct Interval {
    interval: u64,
    next: u64,
}

impl Interval {
    /// Creates an interval that gives `states` checkpoints in a run of `total` wave instructions.
    pub fn of(total: u64, checkpoints: u64) -> Interval {
        let interval = (total / checkpoints).max(1);
        Interval { interval, next: interval }
    }

    /// Begins a dispatch.
    pub fn begin(&mut self) {
        self.next = self.interval;
    }

    /// Wave instructions of the dispatch at the next checkpoint.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Distance between checkpoints, in wave instructions.
    pub fn length(&self) -> u64 {
        self.interval
    }

    /// Returns `true` if a checkpoint is due, and schedules the next one.
    pub fn has_come(&mut self, executed: u64) -> bool {
        let has_come = executed >= self.next;
        if has_come {
            self.next = executed.saturating_add(self.interval);
        }
        has_come
    }

    /// Doubles the distance, which halves the number of checkpoints.
    pub fn double(&mut self) {
        self.interval = self.interval.saturating_mul(2);
    }
}

impl Checkpoint {
    /// Wave instructions that the dispatch has executed.
    pub fn executed(&self) -> u64 {
        self.execution.statistics().wave_instructions
    }

    /// Returns `true` if a run of the same dispatch in this state continues exactly like the
    /// checkpointed run.
    pub fn is_state_of(&self, device: &Simulator, execution: &Execution) -> bool {
        execution.continues_like(&self.execution) && device.is_in_state_of(&self.device)
    }

    /// Bytes used by the checkpoint.
    pub fn bytes(&self) -> u64 {
        self.execution.state_bytes() + self.written
    }
}

impl WorkgroupCheckpoint {
    /// Bytes used by the checkpoint.
    pub fn bytes(&self) -> u64 {
        let memory: usize = self.memory.iter().map(|(_, bytes)| bytes.len()).sum();
        self.execution.state_bytes() + memory as u64
    }
}
