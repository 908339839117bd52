//! Tracks the fidelity of executed operations, and reports it at the end of each launch.

use crate::in_process::reporting::report_event;
use crate::report::Event;
use flipwave_cuda::{KernelLaunch, LaunchDriver, MemoryMap};
use flipwave_device::{Completion, DeviceError};
use flipwave_injector::FidelityRecord;
use flipwave_machine::{Execution, FidelityCheck, Machine, Progress};
use flipwave_ptx_sim::PtxGpu;

/// LaunchDriver that tracks the fidelity of executed operations.
#[derive(Default)]
pub struct FidelityDriver {
    /// Tracking state of each device.
    checks: Vec<(usize, Box<dyn FidelityCheck>)>,
    /// Number of the current device, and the kernel.
    current: (usize, String),
}

impl FidelityDriver {
    fn check(&mut self, gpu: &PtxGpu) -> &mut dyn FidelityCheck {
        let device = self.current.0;
        let known = self.checks.iter().position(|(known, _)| *known == device);
        let index = known.unwrap_or_else(|| {
            self.checks.push((device, gpu.fidelity_check()));
            self.checks.len() - 1
        });
        &mut *self.checks[index].1
    }
}

impl LaunchDriver for FidelityDriver {
    fn begin(
        &mut self,
        _: &PtxGpu,
        _: &MemoryMap,
        launch: &KernelLaunch,
    ) -> Result<(), DeviceError> {
        self.current = (launch.device, launch.dispatch.kernel.clone());
        Ok(())
    }

    fn start(&mut self, gpu: &PtxGpu, execution: &Execution) -> Result<(), DeviceError> {
        let kernel = self.current.1.clone();
        gpu.begin_fidelity(&kernel, execution, self.check(gpu));
        Ok(())
    }

    fn advance(
        &mut self,
        gpu: &mut PtxGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let check = self.check(gpu);
        gpu.advance_with_fidelity(execution, check, until)
    }

    fn end(
        &mut self,
        gpu: &PtxGpu,
        _: &MemoryMap,
        _: &KernelLaunch,
        _: &Completion,
    ) -> Result<(), DeviceError> {
        let fidelity = gpu.fidelity(self.check(gpu));
        report_event(&Event::Fidelity(FidelityRecord::of(&fidelity)));
        Ok(())
    }
}
