//! The report of this process, and the end of the application on failures.

use super::identity::{self, Identity};
use crate::processes::output_of_process;
use crate::report::{Event, Report};
use crate::session::{Session, TargetProcess};
use flipwave_device::DeviceFault;
use flipwave_kfd::KernelDispatch;
use flipwave_sim::EmbeddedGpu;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The exit code of an application that the agent ends.
const EXIT_CODE: i32 = 2;

/// The open report of a process.
struct ProcessReport {
    pid: u32,
    report: Report,
    /// `true` once [`Event::Dispatches`] has been reported.
    has_dispatches: bool,
}

/// The report of this process. A forked process inherits that of its parent.
static REPORT: Mutex<Option<ProcessReport>> = Mutex::new(None);

fn process_report() -> MutexGuard<'static, Option<ProcessReport>> {
    REPORT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the report of this process, unless it is open.
pub fn open_report(session: &Session) -> Result<(), String> {
    let pid = std::process::id();
    let mut open = process_report();
    if open.as_ref().is_none_or(|open| open.pid != pid) {
        let path = Identity::of_process().path.clone();
        let report = Report::open(session.report.as_deref(), path);
        let mut report = report.map_err(|error| format!("cannot write the report: {error}"))?;
        report.add(&Event::Opened { pid, command: identity::command() });
        *open = Some(ProcessReport { pid, report, has_dispatches: false });
    }
    Ok(())
}

/// Reports an event to the program that started the application.
pub fn report_event(event: &Event) {
    if let Some(open) = &mut *process_report() {
        open.report.add(event);
    }
}

/// Reports, once, that this process dispatches a kernel other than a runtime kernel.
pub fn report_dispatches() {
    if let Some(open) = &mut *process_report()
        && !std::mem::replace(&mut open.has_dispatches, true)
    {
        open.report.add(&Event::Dispatches);
    }
}

/// Returns `true` if this process is the target of a fault: the first process that matches the filter and
/// calls this function, which it does when it dispatches a kernel.
pub fn is_target(filter: &TargetProcess) -> bool {
    let identity = Identity::of_process();
    filter.matches(&identity.path, &identity::command()) && identity.claim_target()
}

/// The file that this process writes for the application's `output`. The first process writes `output`
/// itself, others a file with their path in the process tree appended to the name.
///
/// # Errors
/// A message, if several processes write and `output` is not a regular file.
pub fn output_file(output: &Path) -> Result<PathBuf, String> {
    let identity = Identity::of_process();
    let file = if identity.claim_output() {
        output.to_owned()
    } else if flipwave_host::output::check(output).is_ok() {
        output_of_process(output, &identity.path)
    } else {
        return Err(format!(
            "cannot write the output of several processes to {}; expected a regular file",
            output.display()
        ));
    };
    report_event(&Event::Writes { file: file.clone() });
    Ok(file)
}

/// Reports a dispatch that was stopped by a fault.
pub fn report_fault(gpu: &EmbeddedGpu, dispatch: &KernelDispatch, fault: &DeviceFault) {
    let kernel = dispatch.kernel.as_ref();
    report_event(&Event::Fault {
        dispatch: kernel.map(|kernel| kernel.number),
        kernel: kernel.map_or_else(String::new, |kernel| kernel.name.to_string()),
        cause: fault.cause.kind(),
        text: fault_text(gpu, dispatch, fault),
    });
}

/// Describes a fault and its context, with source lines if the code object has them.
pub fn fault_text(gpu: &EmbeddedGpu, dispatch: &KernelDispatch, fault: &DeviceFault) -> String {
    let lines = gpu.lines(dispatch.module);
    let line = lines.and_then(|lines| lines.lookup(fault.place.pc));
    fault.report(line.as_ref()).to_string()
}

/// Reports a failure of the agent and ends the application.
pub fn fail(reason: &str) -> ! {
    report_event(&Event::Failed { reason: reason.to_owned() });
    // Standard error may be closed.
    let _ =
        writeln!(std::io::stderr(), "flipwave: {}", flipwave_host::output::printable_lines(reason));
    end()
}

/// Ends the application immediately, because the runtime's exit handlers may wait for the stopped GPU.
pub fn end() -> ! {
    // SAFETY: only ends the process.
    unsafe { libc::_exit(EXIT_CODE) }
}
