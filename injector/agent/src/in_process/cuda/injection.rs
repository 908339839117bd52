//! Injects a fault inside the simulated GPU.

use crate::in_process::injection::{SiteInjection, end_if_hung};
use flipwave_cuda::{KernelLaunch, LaunchDriver, MemoryMap};
use flipwave_device::{Completion, DeviceError};
use flipwave_machine::{Execution, Machine, Progress, Unobserved};
use flipwave_ptx_sim::PtxGpu;

/// LaunchDriver that injects a fault at a site.
pub struct InjectionDriver(pub SiteInjection);

impl LaunchDriver for InjectionDriver {
    fn limit(&self, launch: &KernelLaunch) -> u64 {
        self.0.watch.limit(Some(launch.number))
    }

    fn begin(
        &mut self,
        _: &PtxGpu,
        _: &MemoryMap,
        launch: &KernelLaunch,
    ) -> Result<(), DeviceError> {
        self.0.begin(Some(launch.number), launch.dispatch.grid, launch.dispatch.workgroup);
        Ok(())
    }

    fn advance(
        &mut self,
        gpu: &mut PtxGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        if self.0.watch.is_watched {
            gpu.advance(execution, &mut self.0.observer, until)
        } else {
            gpu.advance(execution, &mut Unobserved, until)
        }
    }

    fn end(
        &mut self,
        _: &PtxGpu,
        _: &MemoryMap,
        _: &KernelLaunch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        self.0.report_struck();
        end_if_hung(completion);
        Ok(())
    }
}
