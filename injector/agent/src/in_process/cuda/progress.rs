//! Reports long-running launches and the number of executed instructions, for any driver.

use crate::in_process::progress::ProgressReporter;
use flipwave_cuda::{KernelLaunch, LaunchDriver, MemoryMap};
use flipwave_device::{Address, Completion, DeviceError, ModuleId};
use flipwave_machine::{Execution, Progress};
use flipwave_ptx_sim::PtxGpu;

/// LaunchDriver that delegates to another driver and reports progress.
pub struct ProgressDriver {
    launcher: Box<dyn LaunchDriver>,
    progress: ProgressReporter,
}

impl ProgressDriver {
    /// Starts a thread that reports the progress of `launcher`. With `counts`, each launch is reported at its end.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn new(launcher: Box<dyn LaunchDriver>, counts: bool) -> std::io::Result<ProgressDriver> {
        Ok(ProgressDriver { launcher, progress: ProgressReporter::new(counts)? })
    }
}

impl LaunchDriver for ProgressDriver {
    fn needs_map(&self) -> bool {
        self.launcher.needs_map()
    }

    fn begin(
        &mut self,
        gpu: &PtxGpu,
        map: &MemoryMap,
        launch: &KernelLaunch,
    ) -> Result<(), DeviceError> {
        self.progress.begin(Some(launch.number), &launch.dispatch.kernel);
        self.launcher.begin(gpu, map, launch)
    }

    fn module(&mut self, gpu: &mut PtxGpu, launch: &KernelLaunch) -> Result<ModuleId, DeviceError> {
        self.launcher.module(gpu, launch)
    }

    fn start(&mut self, gpu: &PtxGpu, execution: &Execution) -> Result<(), DeviceError> {
        self.launcher.start(gpu, execution)
    }

    fn advance(
        &mut self,
        gpu: &mut PtxGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let progress = self.launcher.advance(gpu, execution, until);
        self.progress.advance(execution.statistics().wave_instructions);
        progress
    }

    fn limit(&self, launch: &KernelLaunch) -> u64 {
        self.launcher.limit(launch)
    }

    fn end(
        &mut self,
        gpu: &PtxGpu,
        map: &MemoryMap,
        launch: &KernelLaunch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        self.progress.end(completion);
        self.launcher.end(gpu, map, launch, completion)
    }

    fn before_read(&mut self, gpu: &PtxGpu, map: &MemoryMap, from: Address, bytes: u64) {
        self.launcher.before_read(gpu, map, from, bytes);
    }

    fn unload(&mut self, device: usize, gpu: &mut PtxGpu, module: ModuleId) {
        self.launcher.unload(device, gpu, module);
    }
}
