//! `flipwave exec`.

use crate::Failure;
use crate::arguments::ExecArguments;
use crate::fidelity;
use crate::output::say;
use crate::table::{row, table};
use flipwave_agent::{
    Event, Follower, Library, ProcessEvent, ProcessPath, Processes, RunFiles, Session, StopPolicy,
    Task, end_as, exit_code, run_application,
};
use flipwave_host::cache::cache_folder;
use flipwave_host::output::printable;
use flipwave_injector::FidelityRecord;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroUsize;

pub fn exec(arguments: &ExecArguments) -> Result<(), Failure> {
    let library = Library::find(&cache_folder())?;
    let files = run_files()?;
    let report = files.report();
    let mut session = Session::new(arguments.gpus.all());
    let processors = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = arguments.threads.unwrap_or_else(processors);
    session.task = Task::Parallel { threads, any_order: arguments.any_order };
    if arguments.strict {
        session.task = Task::Strict { races: arguments.races };
    }
    if arguments.fidelity {
        session.task = Task::Fidelity;
    }
    session.report = Some(report.clone());
    session.processes = Some(files.processes());
    session.counts = arguments.count;
    let (mut follower, mut heard) = (Follower::new(report), Heard::default());
    let look = || heard.hear(follower.read_new().unwrap_or_default());
    let environment = library.environment(&session)?;
    let status =
        run_application(&arguments.command, &environment, &files, StopPolicy::ForwardOnly, look)
            .map_err(|reason| cannot_start(&arguments.command, reason))?;
    // The signal that may end this process now does not remove it.
    drop(files);
    let counted = arguments.count.then(|| heard.counted());
    let fidelity = arguments.fidelity.then(|| fidelity::text(&heard.fidelity));
    let tables: Vec<String> = counted.into_iter().chain(fidelity).collect();
    if !tables.is_empty() {
        say(tables.join("\n").trim_end());
    }
    for (process, violation) in &heard.violations {
        match heard.index(process) {
            Some(index) => say(format_args!("process {index}: {violation}\n")),
            None => say(format_args!("{violation}\n")),
        }
    }
    if heard.processes.are_several() && (arguments.count || !heard.violations.is_empty()) {
        say(&heard.processes);
    }
    let code = if arguments.strict { exit_code(status) } else { end_as(status) };
    match (code, heard.violations.len()) {
        (0, 0) => Ok(()),
        (0, count) => Err(Failure::RulesBroken { count }),
        (code, _) => Err(Failure::Ended(code)),
    }
}

/// New files for a run of an application.
pub fn run_files() -> Result<RunFiles, Failure> {
    RunFiles::new().map_err(|reason| Failure::File {
        file: std::env::temp_dir().display().to_string(),
        reason: reason.to_string(),
    })
}

/// An application that cannot be started.
pub fn cannot_start(command: &[OsString], reason: std::io::Error) -> Failure {
    let program = command.first().map(|program| program.display().to_string());
    Failure::Application { program: program.unwrap_or_default(), reason }
}

/// What the application's processes have reported.
#[derive(Default)]
struct Heard {
    processes: Processes,
    /// How the rules of the hardware were broken, and where.
    violations: Vec<(ProcessPath, String)>,
    /// Dispatches and wave instructions by process and kernel.
    executed: BTreeMap<(ProcessPath, String), (u64, u64)>,
    /// How exact what was executed is.
    fidelity: FidelityRecord,
}

impl Heard {
    /// Prints what is to be known at once, and keeps the rest.
    fn hear(&mut self, reported: Vec<ProcessEvent>) {
        for reported in reported {
            self.processes.add(&reported);
            let ProcessEvent { process, event } = reported;
            match event {
                Event::Running { dispatch, kernel, instructions, milliseconds } => {
                    let name = name(dispatch, &kernel);
                    let progress = progress(instructions, milliseconds);
                    self.say_of(&process, format_args!("{name} {progress}"));
                }
                Event::Fault { dispatch: None, kernel, text, .. } if kernel.is_empty() => {
                    self.say_of(&process, format_args!("{text}"));
                }
                Event::Fault { dispatch, kernel, text, .. } => {
                    self.say_of(&process, format_args!("{}: {text}", name(dispatch, &kernel)));
                }
                Event::Refused { text } => self.say_of(&process, format_args!("{text}")),
                Event::Violation { text } => self.violations.push((process, text)),
                Event::Executed { kernel, instructions, .. } => {
                    let (dispatches, all) = self.executed.entry((process, kernel)).or_default();
                    *dispatches += 1;
                    *all += instructions;
                }
                Event::Fidelity(found) => self.fidelity.add(found),
                // The library says itself that it has failed; nothing is struck here, and no tool
                // looks.
                Event::Failed { .. }
                | Event::Struck { .. }
                | Event::NotStruck { .. }
                | Event::NotCounted { .. }
                | Event::Opened { .. }
                | Event::Dispatches
                | Event::Writes { .. }
                | Event::Kernel { .. }
                | Event::Remark { .. } => {}
            }
        }
    }

    /// Prints a line about a process, which is named where there are several so far.
    fn say_of(&self, process: &ProcessPath, text: fmt::Arguments<'_>) {
        let mut all = self.processes.all();
        match all.find(|(place, _)| *place == process).filter(|_| self.processes.all().count() > 1)
        {
            Some((_, record)) => say(format_args!("flipwave: pid {}: {text}", record.pid)),
            None => say(format_args!("flipwave: {text}")),
        }
    }

    /// The index of a process, where several have dispatched kernels.
    fn index(&self, process: &ProcessPath) -> Option<usize> {
        self.processes.index(process).filter(|_| self.processes.are_several())
    }

    /// What was executed; by process where several have dispatched kernels.
    fn counted(&self) -> String {
        let head: &[&str] = if self.processes.are_several() { &["process"] } else { &[] };
        let mut rows = vec![row(&[head, &["kernel", "dispatches", "instructions"]].concat())];
        rows.extend(self.executed.iter().map(|((process, kernel), (dispatches, instructions))| {
            let index = self.index(process).map(|index| index.to_string());
            let kernel = if kernel.is_empty() { RUNTIME } else { kernel };
            let head: &[&str] = match &index {
                Some(index) => &[index],
                // The runtime of a process that has dispatched nothing.
                None if self.processes.are_several() => &["-"],
                None => &[],
            };
            let numbers = [dispatches.to_string(), instructions.to_string()];
            row(&[head, &[kernel, &numbers[0], &numbers[1]]].concat())
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
        (Some(dispatch), kernel) => format!("dispatch {dispatch}, kernel {}", printable(kernel)),
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
            let event = Event::Executed { dispatch, kernel: kernel.into(), instructions: 10 };
            heard.hear(vec![ProcessEvent { process: ProcessPath::default(), event }]);
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
