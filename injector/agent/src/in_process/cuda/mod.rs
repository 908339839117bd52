//! Opens the GPUs of CUDA applications, with the launch driver of the session's task.

mod fidelity;
mod hook_injection;
mod injection;
mod observer;
mod progress;
mod recorder;
mod strict;
mod tool;

use super::injection::{SiteInjection, SiteWatch};
use super::reporting::{fail, open_report, report_event};
use super::{failed, load_function};
use crate::report::Event;
use crate::session::{Session, Task};
use crate::tool::ToolPath;
use fidelity::FidelityDriver;
use flipwave_cuda::{Configuration, FaultedLaunch, LaunchDriver, PlainLaunchDriver};
use hook_injection::HookInjectionDriver;
use injection::InjectionDriver;
use observer::ObserverDriver;
use progress::ProgressDriver;
use recorder::CudaRecorder;
use strict::StrictDriver;
use tool::ToolDriver;

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
    let launcher: Box<dyn LaunchDriver> = match &session.task {
        Task::Run | Task::Parallel { .. } => Box::new(PlainLaunchDriver),
        Task::Fidelity => Box::new(FidelityDriver::default()),
        Task::Inject { process, site, limits, function, hooks } => {
            let [target] = &targets[..] else {
                let count = targets.len();
                return Err(format!("cannot inject a fault with {count} GPUs; expected 1"));
            };
            if let Some(file) = function {
                load_function(file)?;
            }
            let watch = SiteWatch::new(process, site, limits, target)?;
            match hooks {
                None => Box::new(InjectionDriver(SiteInjection::new(watch, target))),
                Some(file) => Box::new(HookInjectionDriver::new(watch, file, target)?),
            }
        }
        Task::Capture { file, command } => Box::new(CudaRecorder::create(file, &session, command)?),
        Task::Tool(tool) if tool.by == ToolPath::Embedded => Box::new(ObserverDriver::new(tool)?),
        Task::Tool(tool) => Box::new(ToolDriver::new(tool, &targets)?),
        Task::Strict { races: false } => Box::new(StrictDriver::default()),
        Task::Strict { races: true } => {
            return Err("data races are found in code of AMD's GPUs only".to_owned());
        }
        Task::InjectWithHooks(_) => {
            return Err(
                "the session injects into code of AMD's GPUs; expected code for PTX".to_owned()
            );
        }
    };
    let launcher: Box<dyn LaunchDriver> = match session.report {
        None => launcher,
        Some(_) => {
            let progress = ProgressDriver::new(launcher, session.counts);
            Box::new(progress.map_err(|error| format!("cannot start a thread: {error}"))?)
        }
    };
    Ok(Configuration { targets, launcher, report_fault, fail: failed })
}

/// Reports a launch that was stopped by a fault.
fn report_fault(faulted: &FaultedLaunch<'_>) {
    let FaultedLaunch { launch, fault, text } = faulted;
    report_event(&Event::Fault {
        dispatch: Some(launch.number),
        kernel: launch.dispatch.kernel.clone(),
        cause: fault.cause.kind(),
        text: (*text).to_owned(),
    });
}
