//! The processes of an application that use a GPU, according to the report.

use crate::report::{Event, ProcessEvent};
use flipwave_process_tree::ProcessPath;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// A program that has opened a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessRecord {
    /// The process ID, which differs from run to run.
    pub pid: u32,
    /// The program and its arguments.
    pub command: String,
    /// `true` if the process has dispatched a kernel other than a runtime kernel.
    pub dispatches: bool,
    /// The table or capture that the process has written.
    pub output: Option<PathBuf>,
}

/// The processes of an application that have opened a GPU, in the order of their creation, MPI ranks by
/// number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processes(BTreeMap<ProcessPath, ProcessRecord>);

impl Processes {
    /// Updates the processes with an event.
    pub fn add(&mut self, event: &ProcessEvent) {
        let ProcessEvent { process, event } = event;
        match event {
            Event::Opened { pid, command } => {
                let record = self.record(process);
                (record.pid, record.command) = (*pid, command.clone());
            }
            Event::Dispatches => self.record(process).dispatches = true,
            Event::Writes { file } => self.record(process).output = Some(file.clone()),
            _ => {}
        }
    }

    fn record(&mut self, process: &ProcessPath) -> &mut ProcessRecord {
        self.0.entry(process.clone()).or_default()
    }

    /// The processes of a report.
    pub fn from_events(events: &[ProcessEvent]) -> Processes {
        let mut processes = Processes::default();
        events.iter().for_each(|event| processes.add(event));
        processes
    }

    /// All processes.
    pub fn all(&self) -> impl Iterator<Item = (&ProcessPath, &ProcessRecord)> {
        self.0.iter()
    }

    /// The processes that have dispatched kernels; the position is the index of the process.
    pub fn dispatching(&self) -> impl Iterator<Item = (&ProcessPath, &ProcessRecord)> {
        self.0.iter().filter(|(_, record)| record.dispatches)
    }

    /// The index of a process among those that have dispatched kernels.
    pub fn index(&self, process: &ProcessPath) -> Option<usize> {
        self.dispatching().position(|(path, _)| path == process)
    }

    /// Returns `true` if several processes have dispatched kernels.
    pub fn are_several(&self) -> bool {
        self.dispatching().nth(1).is_some()
    }
}

impl fmt::Display for Processes {
    /// Writes one line for each process that has dispatched kernels.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (path, record)) in self.dispatching().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "process {index}: ")?;
            if let Some(rank) = path.rank {
                write!(f, "rank {rank}, ")?;
            }
            write!(f, "pid {}, {}", record.pid, record.command)?;
        }
        Ok(())
    }
}

/// The output file of a process that is not the first to write `output`, such as `table.csv.0.1`.
pub fn output_of_process(output: &Path, process: &ProcessPath) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(format!(".{process}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(process: &str, event: Event) -> ProcessEvent {
        ProcessEvent { process: process.parse().expect("a path"), event }
    }

    #[test]
    fn only_processes_that_dispatch_kernels_have_an_index() {
        let opened = |process: &str, pid, command: &str| {
            reported(process, Event::Opened { pid, command: command.to_owned() })
        };
        let events = [
            opened("0", 7, "python3 main.py"),
            opened("rank1", 9, "./a 1"),
            reported("rank1", Event::Dispatches),
            opened("rank0", 12, "./a 0"),
            reported("rank0", Event::Dispatches),
        ];
        let processes = Processes::from_events(&events);
        assert_eq!(processes.all().count(), 3);
        assert!(processes.are_several());
        assert_eq!(processes.index(&"rank1".parse().expect("a path")), Some(1));
        assert_eq!(processes.index(&"0".parse().expect("a path")), None);
        let text = "process 0: rank 0, pid 12, ./a 0\nprocess 1: rank 1, pid 9, ./a 1";
        assert_eq!(processes.to_string(), text);
        assert!(!Processes::from_events(&events[..3]).are_several());
    }

    #[test]
    fn output_of_process_appends_its_path() {
        let process = "rank0.1+1".parse().expect("a path");
        let output = output_of_process(Path::new("a/t.csv"), &process);
        assert_eq!(output, Path::new("a/t.csv.rank0.1+1"));
    }
}
