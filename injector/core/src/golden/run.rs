//! Runs of a workload without a fault.

use crate::golden::survey::surveyed;
use crate::golden::{Golden, GoldenError};
use crate::inject::injection::Ending;
use crate::inject::run::run;
use crate::workload::Workload;
use flipwave_device::{
    Completion, Device, DeviceError, DeviceFault, Dispatch, FaultCause, KernelPacket, WaveId,
    WaveLocation,
};
use flipwave_sim::strict::{StrictOptions, Violation};
use flipwave_sim::{
    ByteSet, EmbeddedGpu, Fidelity, FidelityCheck, Footprints, Policy, Stalls, Unobserved,
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

    /// Runs the workload without a fault, and reports what breaks the rules of the hardware.
    ///
    /// # Errors
    /// As [`Workload::golden`].
    pub fn golden_strict(&self) -> Result<(Golden, Vec<Violation>), GoldenError> {
        self.golden_strict_with(StrictOptions::default())
    }

    /// Like [`Workload::golden_strict`], with options.
    ///
    /// # Errors
    /// As [`Workload::golden`].
    pub fn golden_strict_with(
        &self,
        options: StrictOptions,
    ) -> Result<(Golden, Vec<Violation>), GoldenError> {
        let mut violations = Vec::new();
        let golden = self.run_fault_free(|_, device, dispatch| {
            let mut execution = device.begin(dispatch)?;
            let kernel = &dispatch.kernel;
            let (end, found) =
                self.attendance.finish_strict(kernel, device, &mut execution, options)?;
            violations.extend(found);
            Ok(end)
        })?;
        Ok((golden, violations))
    }

    /// Runs the workload without a fault; besides, which of the operations executed are exact, and
    /// what results that are not settled decide. The run is the same as [`Workload::golden`]'s.
    ///
    /// # Errors
    /// As [`Workload::golden`].
    pub fn golden_with_fidelity(&self) -> Result<(Golden, Fidelity), GoldenError> {
        let mut check = FidelityCheck::new();
        let settled_from = self.settled_from();
        let golden = self.run_fault_free(|index, device, dispatch| {
            if index == settled_from {
                check.only_count();
            }
            let mut execution = device.begin(dispatch)?;
            device.begin_fidelity(&dispatch.kernel, &execution, &mut check);
            self.attendance.carry_on(&dispatch.kernel, &mut execution, |execution, until| {
                device.advance_with_fidelity(execution, &mut Unobserved, &mut check, until)
            })
        })?;
        Ok((golden, self.fidelity(&mut check)))
    }

    /// The dispatch from which on, as far as the code shows, nothing is decided by results that are not
    /// settled.
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

    /// What was found of the fidelity of a run.
    pub(crate) fn fidelity(&self, check: &mut FidelityCheck) -> Fidelity {
        let mut fidelity = self.device.fidelity(check);
        for own in &mut fidelity.decisions {
            if let Some(guest) = self.guests.get(&own.module.0) {
                let wave = own.wave.unwrap_or(WaveId { workgroup: [0; 3], wave: 0 });
                own.pc = guest.place(WaveLocation { pc: own.pc, wave }).pc;
            }
        }
        fidelity
    }

    /// Runs the workload without a fault; also returns accesses beyond the LDS of a workgroup
    /// or the private memory of a work-item, each with the index of its dispatch, however the run ends.
    /// The run is the same as [`Workload::golden`]'s.
    pub fn golden_within_segments(&self) -> (Result<Golden, GoldenError>, Vec<(u32, Violation)>) {
        let mut violations = Vec::new();
        let golden = self.run_fault_free(|index, device, dispatch| {
            let found = (&mut violations, None);
            let (end, _) = surveyed(self, (index, dispatch), device, None, None, found)?;
            Ok(end)
        });
        (golden, violations)
    }

    /// Whether the workload without a fault writes a byte of each output, in their order. What
    /// happens to memory between dispatches does not count.
    ///
    /// # Errors
    /// As [`Workload::golden`].
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
                *is_written |= touched.iter().any(|(_, own)| own.written.intersects(bytes));
            }
            Ok(end)
        })?;
        Ok(outputs.into_iter().map(|(_, is_written)| is_written).collect())
    }

    /// Runs the workload on a clone of the device, each dispatch by `dispatch_one`, which gets
    /// its index. Waves that go round in loops for ever end it.
    pub(crate) fn run_fault_free(
        &self,
        dispatch_one: impl FnMut(u32, &mut EmbeddedGpu, &Dispatch) -> Result<Completion, DeviceError>,
    ) -> Result<Golden, GoldenError> {
        let mut device = self.start()?;
        device.set_policy(Policy { stalls: Stalls::End, ..device.policy() });
        self.run_on(device, dispatch_one)
    }

    /// Runs the workload without a fault on a device as its first dispatch finds it, each dispatch by
    /// `dispatch_one`, which gets its index.
    pub(crate) fn run_on(
        &self,
        device: EmbeddedGpu,
        mut dispatch_one: impl FnMut(
            u32,
            &mut EmbeddedGpu,
            &Dispatch,
        ) -> Result<Completion, DeviceError>,
    ) -> Result<Golden, GoldenError> {
        let limits: Vec<u64> =
            self.program.dispatches.iter().map(|own| own.instruction_limit).collect();
        let ended = run(self, &limits, device, |index, device, own| {
            check_packet(index, device, own)?;
            Ok::<_, GoldenError>(dispatch_one(index, device, own)?)
        });
        match ended? {
            Ending::Completed { outputs, statistics } => Ok(Golden { outputs, statistics }),
            Ending::Faulted { dispatch, fault } => Err(self.failed(dispatch, fault)),
        }
    }

    /// A fault that ends a dispatch without a fault injected.
    pub(crate) fn failed(&self, dispatch: u32, fault: DeviceFault) -> GoldenError {
        let own = &self.program.dispatches[dispatch as usize];
        let (kernel, place) = (own.kernel.clone(), fault.place);
        match fault.cause {
            FaultCause::Watchdog { executed } if self.attendance.is_stopped() => {
                GoldenError::Stopped { dispatch, kernel, executed, place }
            }
            FaultCause::Watchdog { executed } if executed >= own.instruction_limit => {
                GoldenError::TooLong { dispatch, kernel, executed, place }
            }
            _ => GoldenError::Faulted { dispatch, kernel, fault },
        }
    }
}

/// Checks that a packet in memory, which the device executes, agrees with the record, which is used
/// where there is no device.
fn check_packet(index: u32, device: &EmbeddedGpu, own: &Dispatch) -> Result<(), GoldenError> {
    let Some(queued) = own.queued else { return Ok(()) };
    let mut bytes = [0; KernelPacket::SIZE];
    device.read(queued.packet, &mut bytes)?;
    let packet = KernelPacket::from_bytes(&bytes);
    let Dispatch { grid, workgroup, dynamic_lds, .. } = *own;
    let kernel = device.code_object(own.module).and_then(|object| object.kernel(&own.kernel));
    let declared = kernel.map_or(0, |kernel| kernel.descriptor.group_segment_fixed_size);
    let lds_bytes = declared.saturating_add(dynamic_lds);
    if (packet.grid, packet.workgroup, packet.lds_bytes) == (grid, workgroup, lds_bytes) {
        return Ok(());
    }
    let (dispatch, kernel) = (index, own.kernel.clone());
    Err(GoldenError::OtherPacket { dispatch, kernel, grid, workgroup, lds_bytes, packet })
}
