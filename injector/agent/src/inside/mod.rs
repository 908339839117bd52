//! The side that is inside of the application.

mod driver_calls;
mod fidelity;
mod identity;
mod injection;
mod plain;
mod recorder;
mod shadow;
mod strict;
mod watching;

use crate::processes::beside;
use crate::report::{Event, Report};
use crate::session::{Session, StruckProcess, Task};
use crate::tool::{ToolPath, observing};
use flipwave_device::{DeviceError, DeviceFault};
use flipwave_kfd::{CopyObserver, DispatchDriver, KernelDispatch, Machine};
use flipwave_sim::EmbeddedGpu;
use flipwave_sim::strict::StrictOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Exit code of the application where the tool fails, or ends it.
const ENDED: i32 = 2;

extern "C" fn attach() {
    flipwave_kfd::on_open(open);
}

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static ATTACH: extern "C" fn() = attach;

pub use identity::Identity;

/// The report of a process.
struct OwnReport {
    pid: u32,
    report: Report,
    /// Whether it says that a kernel was dispatched.
    says_dispatches: bool,
}

/// The report of this process, or of the one from which it was forked.
static REPORT: Mutex<Option<OwnReport>> = Mutex::new(None);

fn own_report() -> MutexGuard<'static, Option<OwnReport>> {
    REPORT.lock().unwrap_or_else(PoisonError::into_inner)
}

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
        flipwave_jit::start_service();
    }
    let targets = session.targets()?;
    let mut copy_observer: Option<Arc<dyn CopyObserver>> = None;
    let driver: Box<dyn DispatchDriver> = match &session.task {
        Task::Run => Box::new(plain::Plain::default()),
        Task::Parallel { threads, any_order } => {
            let (threads, any_order) = (*threads, *any_order);
            Box::new(plain::Plain { threads, any_order, ..plain::Plain::default() })
        }
        Task::Strict { races } => Box::new(strict::Strict::new(StrictOptions { races: *races })),
        Task::Fidelity => Box::new(fidelity::Fidelity::default()),
        Task::Inject { process, site, limits } => {
            let [target] = &targets[..] else {
                return Err(format!("a fault on {} GPUs: expected 1", targets.len()));
            };
            Box::new(injection::Injection::new(process, site, limits, target)?)
        }
        Task::Capture { file, command } => {
            let recorder = recorder::Recorder::create(file, &session, command)?;
            copy_observer = Some(Arc::new(recorder.clone()));
            Box::new(recorder)
        }
        Task::Tool(tool) if tool.by == ToolPath::Embedded => observing(tool)?,
        // What the runtime makes of faults is reported, as on hardware.
        Task::Tool(_) | Task::InjectByHooks(_) => {
            let injects = matches!(session.task, Task::InjectByHooks(_));
            Box::new(plain::Plain { reports_faults: false, injects, ..plain::Plain::default() })
        }
    };
    let driver: Box<dyn DispatchDriver> = match session.report {
        None => driver,
        Some(_) => {
            let watching = watching::Watching::new(driver, session.counts);
            Box::new(watching.map_err(|error| format!("cannot start a thread: {error}"))?)
        }
    };
    flipwave_kfd::start(&targets, driver, copy_observer, failed).map_err(|error| error.to_string())
}

/// Opens the report of this process, if it is not open.
pub fn open_report(session: &Session) -> Result<(), String> {
    let pid = std::process::id();
    let mut own = own_report();
    if own.as_ref().is_none_or(|own| own.pid != pid) {
        let place = Identity::of_process().place.clone();
        let report = Report::to(session.report.as_deref(), place);
        let mut report = report.map_err(|error| format!("cannot write the report: {error}"))?;
        report.add(&Event::Opened { pid, command: identity::command() });
        *own = Some(OwnReport { pid, report, says_dispatches: false });
    }
    Ok(())
}

/// Reports an event to the program that has started the application.
pub fn report_event(event: &Event) {
    if let Some(own) = &mut *own_report() {
        own.report.add(event);
    }
}

/// Reports, once, that this process dispatches a kernel of its own.
pub fn report_dispatches() {
    if let Some(own) = &mut *own_report()
        && !std::mem::replace(&mut own.says_dispatches, true)
    {
        own.report.add(&Event::Dispatches);
    }
}

/// Whether this process is the one that a fault strikes. To be asked when it dispatches a kernel: of
/// several that are meant, it is the first.
pub fn is_struck(process: &StruckProcess) -> bool {
    let own = Identity::of_process();
    process.is(&own.place, &identity::command()) && own.is_struck()
}

/// The file to which this process writes what the application is to write to `output`: the first
/// process writes there, others beside it. `output` has to be a regular file for that.
///
/// # Errors
/// In words, if it is none.
pub fn output_file(output: &Path) -> Result<PathBuf, String> {
    let identity = Identity::of_process();
    let file = if identity.is_writer() {
        output.to_owned()
    } else if flipwave_host::output::check(output).is_ok() {
        beside(output, &identity.place)
    } else {
        return Err(format!(
            "several processes of the application use a GPU, and {} cannot hold what all of them \
             write: expected a regular file",
            output.display()
        ));
    };
    report_event(&Event::Writes { file: file.clone() });
    Ok(file)
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
    let _ =
        writeln!(std::io::stderr(), "flipwave: {}", flipwave_host::output::printable_lines(reason));
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
