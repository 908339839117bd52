//! Opens the GPUs of CUDA applications, with the launch driver of the session's task.

use super::cuda_recorder::CudaRecorder;
use super::injection::SiteInjection;
use super::progress::ProgressReporter;
use super::reporting::{fail, open_report, report_event};
use super::{failed, load_function};
use crate::report::Event;
use crate::session::{Session, Task};
use flipwave_cuda::{Configuration, KernelLaunch, LaunchDriver, MemoryMap, fault_text};
use flipwave_device::{Address, Completion, DeviceError, DeviceFault};
use flipwave_injector::FidelityRecord;
use flipwave_machine::{Execution, FidelityCheck, Machine, Progress};
use flipwave_ptx_sim::PtxGpu;
use std::sync::Arc;

/// Opens the GPUs when the application first uses the driver. Ends the application on errors.
pub fn open() -> Option<Configuration> {
    match start() {
        Ok(configuration) => Some(configuration),
        Err(reason) => fail(&reason),
    }
}

fn start() -> Result<Configuration, String> {
    let session = Session::of_process()?;
    open_report(&session)?;
    let targets = session.ptx_targets()?;
    let unavailable = |what: &str| Err(format!("{what} are not available for PTX"));
    let launcher: Box<dyn LaunchDriver> = match &session.task {
        Task::Run | Task::Parallel { .. } => Box::new(PlainDriver),
        Task::Fidelity => Box::new(FidelityDriver::default()),
        Task::Inject { process, site, limits, function } => {
            let [target] = &targets[..] else {
                let count = targets.len();
                return Err(format!("cannot inject a fault with {count} GPUs; expected 1"));
            };
            if let Some(file) = function {
                load_function(file)?;
            }
            Box::new(InjectionDriver(SiteInjection::new(process, site, limits, target)?))
        }
        Task::Capture { file, command } => Box::new(CudaRecorder::create(file, &session, command)?),
        Task::Strict { .. } => return unavailable("checks of hardware rules"),
        Task::Tool(_) => return unavailable("tools"),
        Task::InjectWithHooks(_) => return unavailable("hooks"),
    };
    let launcher: Box<dyn LaunchDriver> = match session.report {
        None => launcher,
        Some(_) => {
            let progress = ProgressReporter::new(session.counts);
            let progress = progress.map_err(|error| format!("cannot start a thread: {error}"))?;
            Box::new(ProgressDriver { launcher, progress })
        }
    };
    Ok(Configuration { targets, launcher, fail: failed })
}

/// Reports a launch that was stopped by a fault.
pub fn report_fault(gpu: &PtxGpu, launch: &KernelLaunch, fault: &DeviceFault) {
    report_event(&Event::Fault {
        dispatch: Some(launch.number),
        kernel: launch.dispatch.kernel.clone(),
        cause: fault.cause.kind(),
        text: fault_text(gpu, launch, fault),
    });
}

/// Reports a fault, if the launch ended with one.
fn report_completion(gpu: &PtxGpu, launch: &KernelLaunch, completion: &Completion) {
    if let Completion::Faulted(fault) = completion {
        report_fault(gpu, launch, fault);
    }
}

/// Only runs kernels.
struct PlainDriver;

impl LaunchDriver for PlainDriver {
    fn end(
        &mut self,
        gpu: &PtxGpu,
        _: &MemoryMap,
        launch: &KernelLaunch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        report_completion(gpu, launch, completion);
        Ok(())
    }
}

/// Tracks the fidelity of executed operations, and reports it at the end of each launch.
#[derive(Default)]
struct FidelityDriver {
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
        launch: &KernelLaunch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        let fidelity = gpu.fidelity(self.check(gpu));
        report_event(&Event::Fidelity(FidelityRecord::of(&fidelity)));
        report_completion(gpu, launch, completion);
        Ok(())
    }
}

/// Injects a fault at a site.
struct InjectionDriver(SiteInjection);

impl LaunchDriver for InjectionDriver {
    fn limit(&self, launch: &KernelLaunch) -> u64 {
        self.0.limit(Some(launch.number))
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
        if self.0.is_watched {
            gpu.advance(execution, &mut self.0.observer, until)
        } else {
            gpu.advance(execution, &mut flipwave_machine::Unobserved, until)
        }
    }

    fn end(
        &mut self,
        gpu: &PtxGpu,
        _: &MemoryMap,
        launch: &KernelLaunch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        self.0.report_struck();
        if let Completion::Faulted(fault) = completion {
            report_fault(gpu, launch, fault);
            SiteInjection::end_if_hung(fault);
        }
        Ok(())
    }
}

/// Delegates to another driver and reports progress.
struct ProgressDriver {
    launcher: Box<dyn LaunchDriver>,
    progress: ProgressReporter,
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
}

/// Keeps the code of launches alive, so that its address identifies it.
pub type Code = Arc<flipwave_cuda::LoadedCode>;
