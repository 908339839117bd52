//! The side that is inside of the application.

mod driver_calls;
mod fidelity;
mod injection;
mod plain;
mod recorder;
mod shadow;
mod strict;
mod watching;

use crate::report::{Event, Report};
use crate::session::{Session, Task};
use crate::tool::{ToolPath, observing};
use flipwave_device::{DeviceError, DeviceFault};
use flipwave_kfd::{CopyWatch, Driver, KernelDispatch, Machine};
use flipwave_sim::EmbeddedGpu;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Exit code of the application where the tool fails, or ends it.
const ENDED: i32 = 2;

extern "C" fn attach() {
    flipwave_kfd::on_open(open);
}

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static ATTACH: extern "C" fn() = attach;

/// The report of this process.
static REPORT: OnceLock<Mutex<Report>> = OnceLock::new();

/// The machine for the runtime of this process.
fn open() -> Option<Arc<Machine>> {
    match start() {
        Ok(machine) => Some(machine),
        Err(reason) => fail(&reason),
    }
}

fn start() -> Result<Arc<Machine>, String> {
    let session = Session::of_process()?;
    open_report(&session)?;
    if let Some(service) = &session.compiler {
        flipwave_jit::use_service(service.clone());
        // Meanwhile the runtime gets ready.
        flipwave_jit::wake_service();
    }
    let targets = session.targets()?;
    let mut copy_watch: Option<Arc<dyn CopyWatch>> = None;
    let driver: Box<dyn Driver> = match &session.task {
        Task::Run => Box::new(plain::Plain::default()),
        Task::Parallel { threads, any_order } => {
            let (threads, any_order) = (*threads, *any_order);
            Box::new(plain::Plain { threads, any_order, ..plain::Plain::default() })
        }
        Task::Strict => Box::new(strict::Strict::default()),
        Task::Fidelity => Box::new(fidelity::Fidelity::default()),
        Task::Inject { site, limits } => {
            let [target] = &targets[..] else {
                return Err(format!("a fault on {} GPUs: expected 1", targets.len()));
            };
            Box::new(injection::Injection::new(site, limits, target)?)
        }
        Task::Capture { file, command } => {
            let recorder = recorder::Recorder::create(file, &session, command)?;
            copy_watch = Some(Arc::new(recorder.clone()));
            Box::new(recorder)
        }
        Task::Tool(tool) if tool.by == ToolPath::Embedded => observing(tool)?,
        // What the runtime makes of faults is reported, as on hardware.
        Task::Tool(_) | Task::InjectByHooks(_) => {
            let injects = matches!(session.task, Task::InjectByHooks(_));
            Box::new(plain::Plain { reports_faults: false, injects, ..plain::Plain::default() })
        }
    };
    let driver: Box<dyn Driver> = match session.report {
        None => driver,
        Some(_) => {
            let watching = watching::Watching::new(driver, session.counts);
            Box::new(watching.map_err(|error| format!("cannot start a thread: {error}"))?)
        }
    };
    flipwave_kfd::start(&targets, driver, copy_watch, failed).map_err(|error| error.to_string())
}

/// Opens the report of this process, if it is not open.
pub fn open_report(session: &Session) -> Result<(), String> {
    if REPORT.get().is_none() {
        let report = Report::to(session.report.as_deref())
            .map_err(|error| format!("cannot write the report: {error}"))?;
        let _ = REPORT.set(Mutex::new(report));
    }
    Ok(())
}

/// Reports an event to the program that has started the application.
pub fn report_event(event: &Event) {
    if let Some(report) = REPORT.get() {
        report.lock().unwrap_or_else(PoisonError::into_inner).add(event);
    }
}

/// Reports a dispatch that was stopped.
fn report_fault(gpu: &EmbeddedGpu, dispatch: &KernelDispatch, fault: &DeviceFault) {
    let kernel = dispatch.kernel.as_ref();
    report_event(&Event::Fault {
        dispatch: kernel.map(|kernel| kernel.number),
        kernel: kernel.map_or_else(String::new, |kernel| kernel.name.to_string()),
        cause: fault.cause.name().to_owned(),
        text: fault_text(gpu, dispatch, fault),
    });
}

/// A fault in words, with the source line where the code object says it.
fn fault_text(gpu: &EmbeddedGpu, dispatch: &KernelDispatch, fault: &DeviceFault) -> String {
    let lines = gpu.lines(dispatch.module);
    let line = lines.and_then(|lines| lines.lookup(fault.place.pc));
    match line {
        Some(line) => format!("{fault}, {}:{}", line.file, line.line),
        None => fault.to_string(),
    }
}

/// Ends the application because the tool cannot go on.
pub fn fail(reason: &str) -> ! {
    report_event(&Event::Failed { reason: reason.to_owned() });
    // Nobody may be there to read it.
    let _ = writeln!(std::io::stderr(), "flipwave: {reason}");
    end()
}

/// Ends the application at once. What the runtime would do at an orderly end may wait for the GPU,
/// which has stopped.
pub fn end() -> ! {
    // SAFETY: does nothing but to end the process.
    unsafe { libc::_exit(ENDED) }
}

/// The tool's failure as the machine reports it.
fn failed(error: &DeviceError) {
    fail(&error.to_string())
}
