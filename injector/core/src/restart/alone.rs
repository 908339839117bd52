//! Saving states of workgroups that are executed alone, without those beside them.

use super::record::{UnderWay, changed};
use super::states::Keeper;
use flipwave_device::{Completion, DeviceError, DeviceFault, Dim3};
use flipwave_sim::{EmbeddedGpu, Execution, Progress};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The workgroups of a dispatch that are struck, each of which can be executed alone: on any device that
/// is as the dispatch found it, before or after any others of them.
pub(crate) struct Alone<'a> {
    under_way: &'a UnderWay,
    workgroups: Vec<Part>,
    keeper: Mutex<&'a mut Keeper>,
}

/// A workgroup.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub position: Dim3,
    /// What those before it execute, in wave instructions.
    before: u64,
}

/// How a workgroup has ended.
pub(crate) enum AloneEnd {
    /// As in the first run.
    Same,
    /// Otherwise.
    Other,
    /// With a fault of the device.
    Faulted(DeviceFault),
}

impl<'a> Alone<'a> {
    pub(super) fn new(
        under_way: &'a UnderWay,
        positions: Vec<Dim3>,
        keeper: &'a mut Keeper,
    ) -> Alone<'a> {
        let footprints = &under_way.saved.footprints;
        let next = |before: &mut u64, position: Dim3| {
            let part = Part { position, before: *before };
            *before += footprints.get(position)?.statistics.wave_instructions;
            Some(part)
        };
        let workgroups = positions.into_iter().scan(0, next).collect();
        Alone { under_way, workgroups, keeper: Mutex::new(keeper) }
    }

    /// The workgroups, in the order of their positions.
    pub fn workgroups(&self) -> &[Part] {
        &self.workgroups
    }

    /// What they execute, in wave instructions.
    pub fn instructions(&self) -> u64 {
        let footprints = &self.under_way.saved.footprints;
        let own = |part: &Part| footprints.get(part.position).map(|own| own.statistics);
        self.workgroups.iter().filter_map(own).map(|own| own.wave_instructions).sum()
    }

    /// A device as the dispatch has found it.
    pub fn device(&self) -> EmbeddedGpu {
        self.under_way.saved.begun.device.clone()
    }

    /// Executes a workgroup on such a device by `advance`, which pauses where it is told to, and saves
    /// states of it. `after` is the device after the whole dispatch.
    ///
    /// # Errors
    /// None for a dispatch that ran before.
    pub fn execute(
        &self,
        Part { position, before }: Part,
        (device, after): (&mut EmbeddedGpu, &EmbeddedGpu),
        mut advance: impl FnMut(&mut EmbeddedGpu, &mut Execution, u64) -> Result<Progress, DeviceError>,
    ) -> Result<AloneEnd, DeviceError> {
        let saved = &self.under_way.saved;
        let Some(footprint) = saved.footprints.get(position) else { return Ok(AloneEnd::Other) };
        let Some(mut execution) = saved.begun.execution.alone(position, footprint.slot) else {
            return Ok(AloneEnd::Other);
        };
        // Where it pauses there it has ended, and has not given back the memory of the launch, which
        // others still need.
        let end = footprint.statistics.wave_instructions;
        let mut executed = 0;
        while executed < end {
            let interval = self.keeper().workgroups.length();
            let next = (before + executed) / interval * interval + interval - before;
            let progress = advance(device, &mut execution, next.min(end))?;
            executed = execution.statistics().wave_instructions;
            match progress {
                Progress::Ended(Completion::Faulted(fault)) => return Ok(AloneEnd::Faulted(fault)),
                Progress::Ended(Completion::Completed(_)) => return Ok(AloneEnd::Other),
                Progress::Paused if executed >= next && executed < end => {
                    if let Some(state) = saved.workgroup(position, device, &execution)? {
                        self.keeper().keep_workgroup(self.under_way.index, position, state);
                    }
                }
                Progress::Paused => {}
            }
        }
        let is_same = execution.statistics() == footprint.statistics
            && changed(after, device, footprint.written.runs())?.is_empty();
        Ok(if is_same { AloneEnd::Same } else { AloneEnd::Other })
    }

    fn keeper(&self) -> MutexGuard<'_, &'a mut Keeper> {
        // Who panicked while it kept a state has lost that at most.
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
