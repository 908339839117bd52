//! `flipwave exec`.

use crate::Failure;
use crate::arguments::ExecArguments;
use crate::fidelity;
use crate::output::say;
use crate::table::{row, table};
use flipwave_attach::{
    Event, Follower, Library, Session, Task, end_as, exit_code, run_application,
};
use flipwave_hooks::hook::cache_folder;
use flipwave_injector::FidelityRecord;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroUsize;

pub fn exec(arguments: &ExecArguments) -> Result<(), Failure> {
    let library = Library::find(&cache_folder())?;
    let folder = tempfile::tempdir().map_err(|reason| Failure::File {
        file: std::env::temp_dir().display().to_string(),
        reason: reason.to_string(),
    })?;
    let report = folder.path().join("report");
    let mut session = Session::new(arguments.gpus.all());
    let processors = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = arguments.threads.unwrap_or_else(processors);
    session.task = Task::Parallel { threads, any_order: arguments.any_order };
    if arguments.strict {
        session.task = Task::Strict;
    }
    if arguments.fidelity {
        session.task = Task::Fidelity;
    }
    session.report = Some(report.clone());
    session.counts = arguments.count;
    let (mut follower, mut heard) = (Follower::new(report.clone()), Heard::default());
    let look = || heard.hear(follower.news().unwrap_or_default());
    let environment = library.environment(&session)?;
    let status = run_application(&arguments.command, &environment, Some(&report), look)
        .map_err(|reason| cannot_start(&arguments.command, reason))?;
    // The signal that may end this process now does not remove it.
    drop(folder);
    let counted = arguments.count.then(|| heard.counted());
    let fidelity = arguments.fidelity.then(|| fidelity::text(&heard.fidelity));
    let tables: Vec<String> = counted.into_iter().chain(fidelity).collect();
    if !tables.is_empty() {
        say(tables.join("\n").trim_end());
    }
    for violation in &heard.violations {
        say(format_args!("{violation}\n"));
    }
    let code = if arguments.strict { exit_code(status) } else { end_as(status) };
    match (code, heard.violations.len()) {
        (0, 0) => Ok(()),
        (0, count) => Err(Failure::RulesBroken { count }),
        (code, _) => Err(Failure::Ended(code)),
    }
}

/// An application that cannot be started.
pub fn cannot_start(command: &[OsString], reason: std::io::Error) -> Failure {
    let program = command.first().map(|program| program.display().to_string());
    Failure::Application { program: program.unwrap_or_default(), reason }
}

/// What the application's process has reported.
#[derive(Default)]
struct Heard {
    /// How the rules of the hardware were broken.
    violations: Vec<String>,
    /// Dispatches and wave instructions by kernel.
    executed: BTreeMap<String, (u64, u64)>,
    /// How exact what was executed is.
    fidelity: FidelityRecord,
}

impl Heard {
    /// Prints what is to be known at once, and keeps the rest.
    fn hear(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Running { dispatch, kernel, instructions, milliseconds } => {
                    let name = name(dispatch, &kernel);
                    let progress = progress(instructions, milliseconds);
                    say(format_args!("flipwave: {name} {progress}"));
                }
                Event::Fault { dispatch: None, kernel, text, .. } if kernel.is_empty() => {
                    say(format_args!("flipwave: {text}"));
                }
                Event::Fault { dispatch, kernel, text, .. } => {
                    say(format_args!("flipwave: {}: {text}", name(dispatch, &kernel)));
                }
                Event::Refused { text } => say(format_args!("flipwave: {text}")),
                Event::Violation { text } => self.violations.push(text),
                Event::Executed { kernel, instructions, .. } => {
                    let (dispatches, all) = self.executed.entry(kernel).or_default();
                    *dispatches += 1;
                    *all += instructions;
                }
                Event::Fidelity(found) => self.fidelity.add(found),
                // The library says itself that it has failed; nothing is struck here.
                Event::Failed { .. } | Event::Struck { .. } | Event::NotStruck { .. } => {}
            }
        }
    }

    /// What was executed.
    fn counted(&self) -> String {
        let mut rows = vec![row(&["kernel", "dispatches", "instructions"])];
        rows.extend(self.executed.iter().map(|(kernel, (dispatches, instructions))| {
            let kernel = if kernel.is_empty() { RUNTIME } else { kernel };
            row(&[kernel, &dispatches.to_string(), &instructions.to_string()])
        }));
        table(&rows)
    }
}

/// Kernels that the runtime brings, with which it copies and fills.
const RUNTIME: &str = "(the runtime's own)";

/// A dispatch, for a line about it.
fn name(dispatch: Option<u32>, kernel: &str) -> String {
    match (dispatch, kernel) {
        (None, _) => "a kernel of the runtime's own".to_owned(),
        (Some(dispatch), "") => format!("dispatch {dispatch}"),
        (Some(dispatch), kernel) => format!("dispatch {dispatch}, kernel {kernel}"),
    }
}

/// How far a dispatch is that takes long.
fn progress(instructions: u64, milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    if instructions == 0 {
        return format!("has been running for {seconds} s");
    }
    let rate = u128::from(instructions) * 1000 / u128::from(milliseconds.max(1));
    format!(
        "has been running for {seconds} s: {instructions} wave instructions so far, {rate} a second"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_executed_is_counted_by_kernel() {
        let mut heard = Heard::default();
        for (dispatch, kernel) in [(Some(0), "b"), (None, ""), (Some(1), "a"), (Some(2), "b")] {
            heard.hear(vec![Event::Executed { dispatch, kernel: kernel.into(), instructions: 10 }]);
        }
        let text = "kernel               dispatches  instructions\n\
                    (the runtime's own)           1            10\n\
                    a                             1            10\n\
                    b                             2            20\n";
        assert_eq!(heard.counted(), text);
    }

    #[test]
    fn the_rate_of_a_long_kernel_is_reported_where_it_is_known() {
        assert_eq!(progress(0, 5_200), "has been running for 5 s");
        let known = "has been running for 10 s: 5000 wave instructions so far, 500 a second";
        assert_eq!(progress(5_000, 10_000), known);
    }
}
