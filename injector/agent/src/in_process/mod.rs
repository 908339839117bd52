//! The part of the agent that runs inside the application's process: it opens the embedded GPUs with the
//! driver of the session's task, and reports events.

mod capture_file;
mod cuda;
mod driver_calls;
mod fidelity;
mod identity;
mod injection;
mod plain;
mod progress;
mod recorder;
mod reporting;
mod shadow_memory;
mod strict;
mod thread_exit;

use crate::session::{Session, Task};
use crate::tool::{ToolPath, observer_drivers};
use fidelity::FidelityDriver;
use flipwave_device::DeviceError;
use flipwave_injector_amdgpu::register_function;
use flipwave_kfd::{Board, CopyObserver, DispatchDriver, Machine};
use flipwave_sim::Amdgpu;
use flipwave_sim::strict::StrictOptions;
use injection::{InjectionDriver, SiteInjection, SiteWatch};
use plain::PlainDriver;
use progress::ProgressDriver;
use recorder::Recorder;
use std::path::Path;
use std::sync::Arc;
use strict::{Reported, StrictDriver};

extern "C" fn initialize() {
    flipwave_kfd::on_open(open);
    flipwave_cuda::on_open(cuda::open);
}

/// Makes the dynamic loader call [`initialize`] when it loads the agent.
#[used]
#[unsafe(link_section = ".init_array")]
static INITIALIZE: extern "C" fn() = initialize;

pub use reporting::{
    end, fail, is_target, open_report, output_file, report_dispatches, report_event,
};

/// Opens the machine when AMD's runtime opens the driver. Ends the application on errors.
fn open() -> Option<Arc<Machine>> {
    match start() {
        Ok(machine) => Some(machine),
        Err(reason) => fail(&reason),
    }
}

/// Starts the machine with the drivers of the session's task.
fn start() -> Result<Arc<Machine>, String> {
    let session = Session::of_process()?;
    open_report(&session)?;
    if let Some(service) = &session.compiler {
        flipwave_jit::use_service(service.clone());
        // The service starts while the runtime initializes.
        flipwave_jit::start_service();
    }
    let targets = session.targets()?;
    let mut copy_observer: Option<Arc<dyn CopyObserver>> = None;
    let count = targets.len();
    let drivers: Vec<Box<dyn DispatchDriver>> = match &session.task {
        Task::Run => for_each_gpu(count, PlainDriver::default),
        Task::Parallel { threads, any_order } => {
            // A kernel whose workgroups run in any order has only one turn.
            let (threads, any_order) = (*threads, *any_order && count == 1);
            let driver = || PlainDriver { threads, any_order, ..PlainDriver::default() };
            for_each_gpu(count, driver)
        }
        Task::Strict { races } => {
            let (options, reported) = (StrictOptions { races: *races }, Reported::default());
            for_each_gpu(count, || StrictDriver::new(options, Arc::clone(&reported)))
        }
        Task::Fidelity => for_each_gpu(count, FidelityDriver::default),
        Task::Inject { process, site, limits, function, hooks: _ } => {
            let index = session.single_gpu("inject a fault")?;
            if let Some(file) = function {
                load_function(file)?;
            }
            let architecture = Amdgpu::new(targets[index].clone());
            let watch = SiteWatch::new(process, site, limits, &architecture)?;
            let mut drivers =
                for_each_gpu(count, || PlainDriver { injects: true, ..PlainDriver::default() });
            drivers[index] = Box::new(InjectionDriver(SiteInjection::new(watch, &architecture)));
            drivers
        }
        Task::Capture { file, command } => {
            let index = session.single_gpu("capture a run")?;
            let recorder = Recorder::create(file, &session, command, index as u32 + 1)?;
            copy_observer = Some(Arc::new(recorder.clone()));
            let mut drivers = for_each_gpu(count, PlainDriver::default);
            drivers[index] = Box::new(recorder);
            drivers
        }
        Task::Tool(tool) if tool.by == ToolPath::Embedded => observer_drivers(tool, count)?,
        // The interceptor reports the faults that the runtime signals, as on hardware.
        Task::Tool(_) | Task::InjectWithHooks(_) => {
            let injects = matches!(session.task, Task::InjectWithHooks(_));
            let driver =
                || PlainDriver { reports_faults: false, injects, ..PlainDriver::default() };
            for_each_gpu(count, driver)
        }
    };
    let board = |(index, (target, driver))| {
        let driver: Box<dyn DispatchDriver> = match session.report {
            None => driver,
            Some(_) => {
                let progress = ProgressDriver::new(driver, session.counts);
                Box::new(progress.map_err(|error| format!("cannot start a thread: {error}"))?)
            }
        };
        Ok(Board { target, driver, counted: session.counted_kernels(index) })
    };
    let boards: Result<Vec<Board>, String> =
        targets.into_iter().zip(drivers).enumerate().map(board).collect();
    flipwave_kfd::start(boards?, copy_observer, failed).map_err(|error| error.to_string())
}

/// Drivers for `count` GPUs.
fn for_each_gpu<D>(count: usize, driver: impl Fn() -> D) -> Vec<Box<dyn DispatchDriver>>
where
    D: DispatchDriver + 'static,
{
    (0..count).map(|_| Box::new(driver()) as _).collect()
}

/// Loads the function of a fault site from its file.
///
/// # Errors
/// A message, if the file cannot be read or the function not be compiled.
pub fn load_function(file: &Path) -> Result<(), String> {
    let name = file.display();
    let text = flipwave_host::input::read_text(file, flipwave_host::input::TEXT)
        .map_err(|error| format!("{name}: {error}"))?;
    let source = serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
    register_function(source).map(|_| ()).map_err(|error| error.to_string())
}

/// Handles a failure of the machine.
fn failed(error: &DeviceError) {
    fail(&error.to_string())
}
