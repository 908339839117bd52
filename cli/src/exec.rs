//! `flipwave exec`.

use crate::Failure;
use crate::arguments::ExecArguments;
use crate::output::say;
use flipwave_attach::{
    Event, Library, Session, Task, become_application, exit_code, read_report, run_application,
};
use flipwave_hooks::hook::cache_folder;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::Path;

pub fn exec(arguments: &ExecArguments) -> Result<(), Failure> {
    let library = Library::find(&cache_folder())?;
    let mut session = Session::new(&arguments.gpu, arguments.gpus);
    if arguments.threads > NonZeroUsize::MIN {
        session.task = Task::Parallel { threads: arguments.threads };
    }
    if arguments.strict {
        return strict(&arguments.command, &library, session);
    }
    let reason = become_application(&arguments.command, &library.environment(&session));
    Err(cannot_start(&arguments.command, reason))
}

/// An application that cannot be started.
pub fn cannot_start(command: &[OsString], reason: std::io::Error) -> Failure {
    let program = command.first().map(|program| program.display().to_string());
    Failure::Application { program: program.unwrap_or_default(), reason }
}

/// Runs the application at the strict level; prints what was found when it has ended.
fn strict(command: &[OsString], library: &Library, session: Session) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let report = folder.path().join("report");
    let session = Session { task: Task::Strict, report: Some(report.clone()), ..session };
    let status = run_application(command, &library.environment(&session))
        .map_err(|reason| cannot_start(command, reason))?;
    let count = print_violations(&report)?;
    match exit_code(status) {
        0 if count > 0 => Err(Failure::RulesBroken { count }),
        0 => Ok(()),
        code => Err(Failure::Ended(code)),
    }
}

/// How many there are.
fn print_violations(report: &Path) -> Result<usize, Failure> {
    let mut count = 0;
    for event in read_report(report)? {
        if let Event::Violation { text } = event {
            say(format!("{text}\n"));
            count += 1;
        }
    }
    Ok(count)
}
