//! Golden runs: runs of a workload without a fault.

use crate::golden::profiling::{Instruments, run_dispatch_profiled};
use crate::golden::{Golden, GoldenError};
use crate::inject::injection::Ending;
use crate::inject::run::run;
use crate::workload::Workload;
use flipwave_device::{Completion, DeviceError, DeviceFault, Dispatch, FaultCause};
use flipwave_machine::{
    ByteSet, Fidelity, Footprints, OutsideSegment, Simulator, Stalls, Unobserved,
};
use std::collections::BTreeMap;

impl Workload {
    /// Runs the workload without a fault.
    ///
    /// # Errors
    /// [`GoldenError`] if a dispatch does not complete or the device refuses a request.
    pub fn golden(&self) -> Result<Golden, GoldenError> {
        self.run_fault_free(|_, device, dispatch| self.dispatch(device, dispatch))
    }

    /// Runs the workload without a fault and reports which executed operations are exact and which
    /// results that are not settled influence control flow or addresses. The run equals
    /// [`Workload::golden`].
    ///
    /// # Errors
    /// See [`Workload::golden`].
    pub fn golden_with_fidelity(&self) -> Result<(Golden, Fidelity), GoldenError> {
        let mut check = self.device.fidelity_check();
        let settled_from = self.settled_from();
        let golden = self.run_fault_free(|index, device, dispatch| {
            if index == settled_from {
                check.only_count();
            }
            let mut execution = device.begin(dispatch)?;
            device.begin_fidelity(&dispatch.kernel, &execution, &mut *check);
            self.cancellation.run_to_end(&dispatch.kernel, &mut execution, |execution, until| {
                device.advance_with_fidelity(execution, &mut *check, until)
            })
        })?;
        Ok((golden, self.device.fidelity(&mut *check)))
    }

    /// Index of the first dispatch from which on, according to the code, no decision depends on results
    /// that are not settled.
    pub(crate) fn settled_from(&self) -> u32 {
        let mut known = BTreeMap::new();
        for (index, dispatch) in self.program.dispatches.iter().enumerate().rev() {
            let is_first = index == 0;
            let known = known.entry((dispatch.module.0, &dispatch.kernel, is_first));
            if !*known.or_insert_with(|| self.device.has_settled_course(dispatch, !is_first)) {
                return index as u32 + 1;
            }
        }
        0
    }

    /// Runs the workload without a fault and also returns the out-of-bounds accesses to LDS or private
    /// memory, each with the index of its dispatch, even if the run fails. The run equals
    /// [`Workload::golden`].
    pub fn golden_within_segments(
        &self,
    ) -> (Result<Golden, GoldenError>, Vec<(u32, OutsideSegment)>) {
        let mut violations = Vec::new();
        let golden = self.run_fault_free(|index, device, dispatch| {
            let instruments = Instruments {
                space_counter: None,
                footprints: None,
                violations: &mut violations,
                followed: None,
            };
            let (end, _) = run_dispatch_profiled(self, index, dispatch, device, instruments)?;
            Ok(end)
        });
        (golden, violations)
    }

    /// For each output, whether a dispatch of the golden run writes at least one of its bytes. Memory
    /// changes by the host between dispatches do not count.
    ///
    /// # Errors
    /// See [`Workload::golden`].
    pub fn written_outputs(&self) -> Result<Vec<bool>, GoldenError> {
        let sets = self
            .program
            .outputs
            .iter()
            .map(|output| ByteSet::of_runs([(output.address, output.bytes as u64)]));
        let mut outputs: Vec<(ByteSet, bool)> = sets.map(|bytes| (bytes, false)).collect();
        self.run_fault_free(|_, device, dispatch| {
            let mut touched = Footprints::default();
            let end = self.run(device, dispatch, &mut Unobserved, Some(&mut touched))?;
            for (bytes, is_written) in &mut outputs {
                *is_written |=
                    touched.iter().any(|(_, footprint)| footprint.written.intersects(bytes));
            }
            Ok(end)
        })?;
        Ok(outputs.into_iter().map(|(_, is_written)| is_written).collect())
    }

    /// Runs the workload on a clone of the device and executes each dispatch, given its index, with
    /// `dispatch_one`. Waves stuck in an infinite loop end the run.
    ///
    /// # Errors
    /// See [`Workload::golden`].
    pub fn run_fault_free(
        &self,
        dispatch_one: impl FnMut(u32, &mut Simulator, &Dispatch) -> Result<Completion, DeviceError>,
    ) -> Result<Golden, GoldenError> {
        let mut device = self.start()?;
        device.set_stalls(Stalls::End);
        self.run_on(device, dispatch_one)
    }

    /// Runs the workload without a fault on `device`, which is in the state before the first dispatch,
    /// and executes each dispatch, given its index, with `dispatch_one`.
    pub(crate) fn run_on(
        &self,
        device: Simulator,
        mut dispatch_one: impl FnMut(u32, &mut Simulator, &Dispatch) -> Result<Completion, DeviceError>,
    ) -> Result<Golden, GoldenError> {
        let limits: Vec<u64> =
            self.program.dispatches.iter().map(|dispatch| dispatch.instruction_limit).collect();
        let ended = run(self, &limits, device, |index, device, dispatch| {
            check_packet(index, device, dispatch)?;
            Ok::<_, GoldenError>(dispatch_one(index, device, dispatch)?)
        });
        match ended? {
            Ending::Completed { outputs, statistics } => Ok(Golden { outputs, statistics }),
            Ending::Faulted { dispatch, fault } => Err(self.failed(dispatch, fault)),
        }
    }

    /// Converts a device fault of the golden run into an error.
    pub(crate) fn failed(&self, dispatch: u32, fault: DeviceFault) -> GoldenError {
        let failed = &self.program.dispatches[dispatch as usize];
        let (kernel, place) = (failed.kernel.clone(), fault.place);
        match fault.cause {
            FaultCause::Watchdog { executed } if self.cancellation.is_stopped() => {
                GoldenError::Stopped { dispatch, kernel, executed, place, context: fault.context }
            }
            FaultCause::Watchdog { executed } if executed >= failed.instruction_limit => {
                GoldenError::TooLong { dispatch, kernel, executed, place, context: fault.context }
            }
            _ => {
                let lines = self.device.lines(failed.module);
                let line = lines.and_then(|lines| lines.lookup(place.pc)).map(Box::new);
                GoldenError::Faulted { dispatch, kernel, fault: Box::new(fault), line }
            }
        }
    }
}

/// Checks that the packet in memory, which the device executes, matches the recorded dispatch, which is
/// used where there is no device.
fn check_packet(index: u32, device: &Simulator, recorded: &Dispatch) -> Result<(), GoldenError> {
    let Some((packet, lds_bytes)) = device.packet(recorded)? else { return Ok(()) };
    let Dispatch { grid, workgroup, .. } = *recorded;
    if (packet.grid, packet.workgroup, packet.lds_bytes) == (grid, workgroup, lds_bytes) {
        return Ok(());
    }
    let (dispatch, kernel) = (index, recorded.kernel.clone());
    Err(GoldenError::OtherPacket { dispatch, kernel, grid, workgroup, lds_bytes, packet })
}
