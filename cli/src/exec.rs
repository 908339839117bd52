//! `flipwave exec`.

use crate::arguments::ExecArguments;
use crate::failure::Failure;
use crate::fidelity;
use crate::output::say;
use crate::table::{row, table};
use flipwave_agent::{
    Event, Follower, Library, ProcessEvent, ProcessPath, Processes, RunFiles, Session, StopPolicy,
    Task, end_as, exit_code, run_application,
};
use flipwave_device::demangled_kernel;
use flipwave_host::cache::cache_folder;
use flipwave_host::output::printable;
use flipwave_injector::FidelityRecord;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroUsize;

pub fn exec(arguments: &ExecArguments) -> Result<(), Failure> {
    if arguments.races && arguments.gpus.ptx().is_some() {
        return Err(Failure::AmdRaces);
    }
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
    let (mut follower, mut summary) = (Follower::new(report), RunSummary::default());
    let poll = || summary.add(follower.read_new().unwrap_or_default());
    let environment = library.environment(&session)?;
    let policy = StopPolicy::ForwardOnly;
    let status = run_application(&arguments.command, &environment, &files, policy, poll)
        .map_err(|reason| cannot_start(&arguments.command, reason))?;
    // `end_as` may end this process by a signal, which would leave the files behind.
    drop(files);
    let counts = arguments.count.then(|| summary.count_table());
    let fidelity = arguments.fidelity.then(|| fidelity::text(&summary.fidelity));
    let tables: Vec<String> = counts.into_iter().chain(fidelity).collect();
    if !tables.is_empty() {
        say(tables.join("\n").trim_end());
    }
    for (process, violation) in &summary.violations {
        match summary.index(process) {
            Some(index) => say(format_args!("process {index}: {violation}\n")),
            None => say(format_args!("{violation}\n")),
        }
    }
    if summary.processes.are_several() && (arguments.count || !summary.violations.is_empty()) {
        say(&summary.processes);
    }
    let code = if arguments.strict { exit_code(status) } else { end_as(status) };
    match (code, summary.violations.len()) {
        (0, 0) => Ok(()),
        (0, count) => Err(Failure::RuleViolations { count }),
        (code, _) => Err(Failure::Exited(code)),
    }
}

/// Creates the files of a run of an application.
pub fn run_files() -> Result<RunFiles, Failure> {
    RunFiles::new().map_err(|reason| Failure::File {
        file: std::env::temp_dir().display().to_string(),
        reason: reason.to_string(),
    })
}

/// Returns the failure for an application that cannot be started.
pub fn cannot_start(command: &[OsString], reason: std::io::Error) -> Failure {
    let program = command.first().map(|program| program.display().to_string());
    Failure::Application { program: program.unwrap_or_default(), reason }
}

/// The events that the application's processes have reported.
#[derive(Default)]
struct RunSummary {
    processes: Processes,
    /// Violations of hardware rules, by process.
    violations: Vec<(ProcessPath, String)>,
    /// Numbers of executions by process and kernel.
    executed: BTreeMap<(ProcessPath, String), Executed>,
    /// The fidelity of all executed operations.
    fidelity: FidelityRecord,
}

/// The executions of a kernel.
#[derive(Default)]
struct Executed {
    dispatches: u64,
    wave_instructions: u64,
}

impl RunSummary {
    /// Adds events; prints progress and faults immediately.
    fn add(&mut self, events: Vec<ProcessEvent>) {
        for event in events {
            self.processes.add(&event);
            let ProcessEvent { process, event } = event;
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
                    let executed = self.executed.entry((process, kernel)).or_default();
                    executed.dispatches += 1;
                    executed.wave_instructions += instructions;
                }
                Event::Fidelity(fidelity) => self.fidelity.add(fidelity),
                // The agent itself prints why it failed. The other events belong to injections, tools
                // and captures.
                Event::Failed { .. }
                | Event::Struck { .. }
                | Event::NotStruck { .. }
                | Event::NotReached { .. }
                | Event::NotCounted { .. }
                | Event::Opened { .. }
                | Event::Dispatches
                | Event::Writes { .. }
                | Event::Kernel { .. }
                | Event::Remark { .. } => {}
            }
        }
    }

    /// Prints a line about a process; names the process if there have been several so far.
    fn say_of(&self, process: &ProcessPath, text: fmt::Arguments<'_>) {
        let mut all = self.processes.all();
        match all.find(|(path, _)| *path == process).filter(|_| self.processes.all().count() > 1) {
            Some((_, record)) => say(format_args!("flipwave: pid {}: {text}", record.pid)),
            None => say(format_args!("flipwave: {text}")),
        }
    }

    /// The index of a process, if several processes have dispatched kernels.
    fn index(&self, process: &ProcessPath) -> Option<usize> {
        self.processes.index(process).filter(|_| self.processes.are_several())
    }

    /// Formats a table of executions by kernel, and by process if several have dispatched kernels.
    fn count_table(&self) -> String {
        let head: &[&str] = if self.processes.are_several() { &["process"] } else { &[] };
        let mut rows = vec![row(&[head, &["kernel", "dispatches", "instructions"]].concat())];
        rows.extend(self.executed.iter().map(|((process, kernel), executed)| {
            let index = self.index(process).map(|index| index.to_string());
            let kernel = if kernel.is_empty() { RUNTIME } else { kernel };
            let head: &[&str] = match &index {
                Some(index) => &[index],
                // Runtime kernels of a process that has dispatched no kernel itself.
                None if self.processes.are_several() => &["-"],
                None => &[],
            };
            let numbers = [executed.dispatches, executed.wave_instructions].map(|n| n.to_string());
            row(&[head, &[kernel, &numbers[0], &numbers[1]]].concat())
        }));
        table(&rows)
    }
}

/// The table's name for kernels of AMD's runtime, which copy and fill memory.
const RUNTIME: &str = "(runtime kernels)";

/// Describes a dispatch for a message.
fn name(dispatch: Option<u32>, kernel: &str) -> String {
    match (dispatch, kernel) {
        (None, _) => "a runtime kernel".to_owned(),
        (Some(dispatch), "") => format!("dispatch {dispatch}"),
        (Some(dispatch), kernel) => {
            let kernel = demangled_kernel(kernel);
            format!("dispatch {dispatch}, kernel {}", printable(&kernel))
        }
    }
}

/// Describes the progress of a long-running dispatch.
fn progress(instructions: u64, milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    if instructions == 0 {
        return format!("has been running for {seconds} s");
    }
    let rate = u128::from(instructions) * 1000 / u128::from(milliseconds.max(1));
    format!(
        "has been running for {seconds} s: {instructions} wave instructions so far, {rate} per second"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_counted_by_kernel() {
        let mut summary = RunSummary::default();
        for (dispatch, kernel) in [(Some(0), "b"), (None, ""), (Some(1), "a"), (Some(2), "b")] {
            let event = Event::Executed { dispatch, kernel: kernel.into(), instructions: 10 };
            summary.add(vec![ProcessEvent { process: ProcessPath::default(), event }]);
        }
        let text = "kernel             dispatches  instructions\n\
                    (runtime kernels)           1            10\n\
                    a                           1            10\n\
                    b                           2            20\n";
        assert_eq!(summary.count_table(), text);
    }

    #[test]
    fn instruction_rate_of_a_long_kernel_is_reported_if_known() {
        assert_eq!(progress(0, 5_200), "has been running for 5 s");
        let known = "has been running for 10 s: 5000 wave instructions so far, 500 per second";
        assert_eq!(progress(5_000, 10_000), known);
    }
}
