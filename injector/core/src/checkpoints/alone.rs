//! Checkpoints of workgroups that are executed alone, without the other workgroups of their dispatch.

use super::record::{UnderWay, changed};
use super::store::CheckpointStore;
use flipwave_device::{Completion, DeviceError, DeviceFault, Dim3};
use flipwave_machine::{Execution, Progress, Simulator};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The workgroups with faults of a dispatch, if each can be executed alone, in any order, on a device
/// in the state before the dispatch.
pub(crate) struct Alone<'a> {
    under_way: &'a UnderWay,
    workgroups: Vec<Part>,
    store: Mutex<&'a mut CheckpointStore>,
}

/// A workgroup to execute alone.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub position: Dim3,
    /// Wave instructions executed by the preceding workgroups.
    before: u64,
}

/// The end of a workgroup executed alone.
pub(crate) enum AloneEnd {
    /// The workgroup behaved as in the first run.
    Same,
    /// The workgroup behaved differently.
    Other,
    /// The device reported a fault.
    Faulted(DeviceFault),
}

impl<'a> Alone<'a> {
    pub(super) fn new(
        under_way: &'a UnderWay,
        positions: Vec<Dim3>,
        store: &'a mut CheckpointStore,
    ) -> Alone<'a> {
        let footprints = &under_way.saved.footprints;
        let next = |before: &mut u64, position: Dim3| {
            let part = Part { position, before: *before };
            *before += footprints.get(position)?.statistics.wave_instructions;
            Some(part)
        };
        let workgroups = positions.into_iter().scan(0, next).collect();
        Alone { under_way, workgroups, store: Mutex::new(store) }
    }

    /// The workgroups, ordered by position.
    pub fn workgroups(&self) -> &[Part] {
        &self.workgroups
    }

    /// Wave instructions of all workgroups.
    pub fn instructions(&self) -> u64 {
        let footprints = &self.under_way.saved.footprints;
        let statistics =
            |part: &Part| footprints.get(part.position).map(|statistics| statistics.statistics);
        self.workgroups
            .iter()
            .filter_map(statistics)
            .map(|statistics| statistics.wave_instructions)
            .sum()
    }

    /// A device in the state before the dispatch.
    pub fn device(&self) -> Simulator {
        self.under_way.saved.begun.device.clone()
    }

    /// Executes a workgroup on `device` with `advance`, which must pause where requested, and records
    /// checkpoints of it. `after` is the device after the whole dispatch.
    ///
    /// # Errors
    /// None for a dispatch that ran before.
    pub fn execute(
        &self,
        Part { position, before }: Part,
        device: &mut Simulator,
        after: &Simulator,
        mut advance: impl FnMut(&mut Simulator, &mut Execution, u64) -> Result<Progress, DeviceError>,
    ) -> Result<AloneEnd, DeviceError> {
        let saved = &self.under_way.saved;
        let Some(footprint) = saved.footprints.get(position) else { return Ok(AloneEnd::Other) };
        let Some(mut execution) = saved.begun.execution.alone(position, footprint.slot) else {
            return Ok(AloneEnd::Other);
        };
        // Pausing at this count means that the workgroup has ended but has not released the launch's
        // memory, which other workgroups still need.
        let end = footprint.statistics.wave_instructions;
        let mut executed = 0;
        while executed < end {
            let interval = self.store().workgroups.length();
            let next = (before + executed) / interval * interval + interval - before;
            let progress = advance(device, &mut execution, next.min(end))?;
            executed = execution.statistics().wave_instructions;
            match progress {
                Progress::Ended(Completion::Faulted(fault)) => return Ok(AloneEnd::Faulted(fault)),
                Progress::Ended(Completion::Completed(_)) => return Ok(AloneEnd::Other),
                Progress::Paused if executed >= next && executed < end => {
                    if let Some(state) = saved.workgroup(position, device, &execution)? {
                        self.store().keep_workgroup(self.under_way.index, position, state);
                    }
                }
                Progress::Paused => {}
            }
        }
        let is_same = execution.statistics() == footprint.statistics
            && changed(after, device, footprint.written.runs())?.is_empty();
        Ok(if is_same { AloneEnd::Same } else { AloneEnd::Other })
    }

    fn store(&self) -> MutexGuard<'_, &'a mut CheckpointStore> {
        // A panic while storing a checkpoint loses at most that checkpoint.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
