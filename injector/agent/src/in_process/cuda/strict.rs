//! Executes launches on the strict level and reports violations of PTX's rules.

use crate::in_process::reporting::report_event;
use crate::report::Event;
use flipwave_arch::Pc;
use flipwave_cuda::{KernelLaunch, LaunchDriver, MemoryMap};
use flipwave_device::{Completion, DeviceError};
use flipwave_machine::{Execution, Progress};
use flipwave_ptx_sim::{PtxGpu, PtxRule, StrictCheck};
use std::collections::HashSet;

/// A launch driver that checks launches on the strict level.
#[derive(Default)]
pub struct StrictDriver {
    /// Check of the current launch.
    check: StrictCheck,
    /// Rule, address and kernel of the reported violations, so that each is reported once.
    reported: HashSet<(PtxRule, Pc, String)>,
}

impl LaunchDriver for StrictDriver {
    fn begin(&mut self, _: &PtxGpu, _: &MemoryMap, _: &KernelLaunch) -> Result<(), DeviceError> {
        self.check = StrictCheck::default();
        Ok(())
    }

    fn advance(
        &mut self,
        gpu: &mut PtxGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        gpu.advance_checked(execution, &mut self.check, until)
    }

    fn end(
        &mut self,
        _: &PtxGpu,
        _: &MemoryMap,
        launch: &KernelLaunch,
        _: &Completion,
    ) -> Result<(), DeviceError> {
        let kernel = &launch.dispatch.kernel;
        for violation in std::mem::take(&mut self.check).into_violations() {
            let text = format!("kernel {kernel}: {violation}");
            if self.reported.insert((violation.rule, violation.pc, kernel.clone())) {
                report_event(&Event::Violation { text });
            }
        }
        Ok(())
    }
}
