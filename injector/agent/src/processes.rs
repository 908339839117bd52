//! The processes of an application that use a GPU, as their report says.

use crate::report::{Event, Reported};
use flipwave_process_tree::ProcessPath;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// A process that has opened a GPU: one record for each program that did so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessRecord {
    /// The process's number. It differs from run to run.
    pub pid: u32,
    /// The program and its arguments.
    pub command: String,
    /// Whether it has dispatched a kernel of its own.
    pub dispatches: bool,
    /// The file that it has written: a table, or a capture.
    pub output: Option<PathBuf>,
}

/// All processes of an application that have opened a GPU, in the order of birth, ranks by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processes(BTreeMap<ProcessPath, ProcessRecord>);

impl Processes {
    /// Notes what a report says of processes.
    pub fn note(&mut self, reported: &Reported) {
        let Reported { process, event } = reported;
        let record = || ProcessRecord::default();
        match event {
            Event::Opened { pid, command } => {
                let own = self.0.entry(process.clone()).or_insert_with(record);
                (own.pid, own.command) = (*pid, command.clone());
            }
            Event::Dispatches => {
                self.0.entry(process.clone()).or_insert_with(record).dispatches = true;
            }
            Event::Writes { file } => {
                let own = self.0.entry(process.clone()).or_insert_with(record);
                own.output = Some(file.clone());
            }
            _ => {}
        }
    }

    /// The processes of a report.
    pub fn of(events: &[Reported]) -> Processes {
        let mut processes = Processes::default();
        events.iter().for_each(|reported| processes.note(reported));
        processes
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = (&ProcessPath, &ProcessRecord)> {
        self.0.iter()
    }

    /// Those that have dispatched kernels, in order: their index is that of the process.
    pub fn dispatching(&self) -> impl Iterator<Item = (&ProcessPath, &ProcessRecord)> {
        self.0.iter().filter(|(_, record)| record.dispatches)
    }

    /// The index of a process among those that have dispatched kernels.
    pub fn index(&self, process: &ProcessPath) -> Option<usize> {
        self.dispatching().position(|(place, _)| place == process)
    }

    /// Whether several have dispatched kernels.
    pub fn are_several(&self) -> bool {
        self.dispatching().nth(1).is_some()
    }
}

impl fmt::Display for Processes {
    /// One line for each process that has dispatched kernels.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (place, record)) in self.dispatching().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "process {index}: ")?;
            if let Some(rank) = place.rank {
                write!(f, "rank {rank}, ")?;
            }
            write!(f, "pid {}, {}", record.pid, record.command)?;
        }
        Ok(())
    }
}

/// The file of a process beside an output that another process writes: `table.csv.0.1`.
pub fn beside(output: &Path, process: &ProcessPath) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(format!(".{process}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(process: &str, event: Event) -> Reported {
        Reported { process: process.parse().expect("a place"), event }
    }

    #[test]
    fn processes_have_an_index_if_they_dispatch_kernels() {
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
        let processes = Processes::of(&events);
        assert_eq!(processes.all().count(), 3);
        assert!(processes.are_several());
        assert_eq!(processes.index(&"rank1".parse().expect("a place")), Some(1));
        assert_eq!(processes.index(&"0".parse().expect("a place")), None);
        let text = "process 0: rank 0, pid 12, ./a 0\nprocess 1: rank 1, pid 9, ./a 1";
        assert_eq!(processes.to_string(), text);
        assert!(!Processes::of(&events[..3]).are_several());
    }

    #[test]
    fn files_beside_an_output_are_named_after_the_process() {
        let process = "rank0.1+1".parse().expect("a place");
        assert_eq!(beside(Path::new("a/t.csv"), &process), Path::new("a/t.csv.rank0.1+1"));
    }
}
