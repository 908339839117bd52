//! The fault-free run again, when it is known which faults are injected: it shows where they strike,
//! and that the workload does the same twice. States are saved in it from which faulty runs begin.

use crate::population::{Plan, PlanError, Planned};
use crate::restart::{Recorder, SavedStates};
use crate::survey::Touched;
use crate::{Golden, GoldenError};
use flipwave_device::Statistics;
use flipwave_sim::{Fidelity, FidelityCheck};

/// What the second fault-free run has shown.
pub struct Rehearsal {
    /// The run, which is to be the same as the first.
    pub golden: Golden,
    /// How exact the operations are that it executes, and what results that are not settled decide.
    pub fidelity: Fidelity,
    /// The faults asked for, in ascending order of their indices.
    pub faults: Vec<Planned>,
    /// States from which faults begin in the workgroups that the plan strikes; nothing if they were
    /// not wanted, or would need too much memory.
    pub states: Option<SavedStates>,
}

impl Plan<'_> {
    /// Runs the workload, whose dispatches execute `statistics` without a fault, once more, and finds
    /// the faults of these indices. Where it is known what workgroups touch, states are saved, in at most
    /// so many bytes.
    ///
    /// # Errors
    /// As [`Plan::faults`].
    pub fn rehearse(
        &self,
        indices: impl IntoIterator<Item = u64>,
        statistics: &[Statistics],
        touched: Option<Touched>,
        state_bytes: u64,
    ) -> Result<Rehearsal, PlanError> {
        let workload = self.workload();
        let wanted = self.drawn(indices)?;
        let mut search = self.search(&wanted)?;
        let mut check = FidelityCheck::new();
        let struck = self.struck_workgroups();
        let mut recorder = Recorder::new(workload, statistics, struck, touched, state_bytes);
        // Saved states go on as faulty runs do: their policy is the device's own.
        let device = workload.start().map_err(GoldenError::from)?;
        let golden = workload.run_on(device, |index, device, dispatch| {
            search.look((index, dispatch), |observer| {
                workload.as_it_was(dispatch, observer, |observer| {
                    let (kernel, attendance) = (&dispatch.kernel, &workload.attendance);
                    let mut execution = recorder.begin((index, dispatch), device)?;
                    device.begin_fidelity(kernel, &execution, &mut check);
                    let end = attendance.carry_on(kernel, &mut execution, |execution, until| {
                        recorder.advance(device, execution, until, |device, execution, until| {
                            device.advance_with_fidelity(execution, observer, &mut check, until)
                        })
                    })?;
                    recorder.end(device);
                    Ok(end)
                })
            })
        })?;
        let fidelity = workload.fidelity(&mut check);
        let faults = self.complete(wanted, search.found)?;
        Ok(Rehearsal { golden, fidelity, faults, states: recorder.finish() })
    }
}
