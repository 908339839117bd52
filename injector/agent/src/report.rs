//! The report that the agent writes for the program that started the application: one event per line, as
//! JSON, written immediately, so that no event is lost when the application ends abnormally. All processes
//! of an application write to one report.

use flipwave_device::FaultKind;
use flipwave_injector::{FidelityRecord, InjectedChange};
use flipwave_process_tree::ProcessPath;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// An event and the process that reported it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEvent {
    /// The path of the process in the application's process tree.
    #[serde(with = "text")]
    pub process: ProcessPath,
    /// The event.
    pub event: Event,
}

/// Serializes a value as its text form.
mod text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::fmt::Display;
    use std::str::FromStr;

    pub fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// An event in an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A program opened a GPU.
    Opened {
        /// The process ID.
        pid: u32,
        /// The program and its arguments.
        command: String,
    },
    /// A program dispatched its first kernel, not counting runtime kernels.
    Dispatches,
    /// A program that is observed by a tool dispatched a kernel for the first time.
    Kernel {
        /// The name of the kernel.
        name: String,
    },
    /// A message of a tool.
    Remark {
        /// The message.
        text: String,
    },
    /// A process writes its table or its capture to a file.
    Writes {
        /// The file.
        file: PathBuf,
    },
    /// The fault was injected.
    Struck {
        /// The first struck value before the injection.
        before: u64,
        /// The first struck value after the injection.
        after: u64,
        /// The number of words struck until the end of the dispatch.
        words: u64,
        /// `true` if the value was an addend whose change did not change the sum.
        absorbed: bool,
    },
    /// The fault site was reached, but no fault could be injected there.
    NotStruck {
        /// The reason.
        reason: String,
    },
    /// A dispatch was stopped by a device fault.
    Fault {
        /// The number of the dispatch; `None` for runtime kernels.
        dispatch: Option<u32>,
        /// The kernel; empty for runtime kernels.
        kernel: String,
        /// The cause, under its name in result tables, such as `memory_violation`.
        #[serde(with = "text")]
        cause: FaultKind,
        /// The complete description.
        text: String,
    },
    /// The site was reached, but not by all of its lanes, and the hooks strike no others.
    NotReached {
        /// The lanes, one bit each.
        lanes: u64,
    },
    /// A packet was rejected.
    Refused {
        /// The packet and the reason.
        text: String,
    },
    /// A dispatch has been running for a long time.
    Running {
        /// The number of the dispatch; `None` for runtime kernels.
        dispatch: Option<u32>,
        /// The kernel; empty for runtime kernels.
        kernel: String,
        /// Wave instructions executed so far; 0 if unknown before the end of the dispatch.
        instructions: u64,
        /// The time since the start of the dispatch.
        milliseconds: u64,
    },
    /// A dispatch ended; reported if [`Session::counts`](crate::Session::counts) is set.
    Executed {
        /// The number of the dispatch; `None` for runtime kernels.
        dispatch: Option<u32>,
        /// The kernel; empty for runtime kernels.
        kernel: String,
        /// The number of executed wave instructions.
        instructions: u64,
    },
    /// A hardware rule was violated.
    Violation {
        /// The violation and its location.
        text: String,
    },
    /// The fidelity of the operations of a dispatch that ended.
    Fidelity(FidelityRecord),
    /// A tool could not count some executions.
    NotCounted {
        /// The number of sites, or the kernel.
        what: String,
    },
    /// The agent failed and ended the application.
    Failed {
        /// The reason.
        reason: String,
    },
}

impl Event {
    /// The event for an injected fault.
    pub fn struck(struck: &InjectedChange) -> Event {
        let InjectedChange { before, after, words, absorbed } = *struck;
        Event::Struck { before, after, words, absorbed }
    }
}

/// Writer of the events of one process.
#[derive(Debug)]
pub struct Report {
    file: Option<File>,
    process: ProcessPath,
}

impl Report {
    /// Opens the report file. Without a file, events are discarded.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(file: Option<&Path>, process: ProcessPath) -> std::io::Result<Report> {
        let open = flipwave_host::output::append;
        Ok(Report { file: file.map(open).transpose()?, process })
    }

    /// Appends an event. Write errors are ignored: the reader has to handle missing events anyway.
    pub fn add(&mut self, event: &Event) {
        let event = ProcessEvent { process: self.process.clone(), event: event.clone() };
        if let (Some(file), Ok(mut line)) = (&mut self.file, serde_json::to_vec(&event)) {
            line.push(b'\n');
            // A single write, so that events of several threads are not interleaved.
            let _ = file.write_all(&line);
        }
    }
}

/// Reader of a report that is still being written.
#[derive(Debug)]
pub struct Follower {
    file: PathBuf,
    /// The number of bytes read.
    read: u64,
}

impl Follower {
    /// Creates a reader of a report file, which need not exist yet.
    pub fn new(file: PathBuf) -> Follower {
        Follower { file, read: 0 }
    }

    /// Reads the events written since the last call.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_new(&mut self) -> std::io::Result<Vec<ProcessEvent>> {
        let mut file = match flipwave_host::input::open(&self.file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        file.seek(SeekFrom::Start(self.read))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        // An incomplete last line is read again in the next call.
        let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.read += end as u64;
        let lines = text[..end].split(|byte| *byte == b'\n');
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }
}

/// Reads a report, without an incomplete last line. A missing file has no events.
///
/// # Errors
/// If the file cannot be read.
pub fn read_report(file: &Path) -> std::io::Result<Vec<ProcessEvent>> {
    Follower::new(file.to_owned()).read_new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn serialized_names_of_events_are_fixed() {
        let text = || "t".to_owned();
        let events = [
            (
                Event::Opened { pid: 1, command: text() },
                json!({"opened": {"pid": 1, "command": "t"}}),
            ),
            (Event::Dispatches, json!("dispatches")),
            (Event::Kernel { name: text() }, json!({"kernel": {"name": "t"}})),
            (Event::Remark { text: text() }, json!({"remark": {"text": "t"}})),
            (Event::Writes { file: "t".into() }, json!({"writes": {"file": "t"}})),
            (
                Event::Struck { before: 1, after: 2, words: 3, absorbed: true },
                json!({"struck": {"before": 1, "after": 2, "words": 3, "absorbed": true}}),
            ),
            (Event::NotStruck { reason: text() }, json!({"not_struck": {"reason": "t"}})),
            (Event::NotReached { lanes: 3 }, json!({"not_reached": {"lanes": 3}})),
            (
                Event::Fault {
                    dispatch: Some(1),
                    kernel: text(),
                    cause: FaultKind::MemoryViolation,
                    text: text(),
                },
                json!({"fault": {
                    "dispatch": 1, "kernel": "t", "cause": "memory_violation", "text": "t",
                }}),
            ),
            (Event::Refused { text: text() }, json!({"refused": {"text": "t"}})),
            (
                Event::Running { dispatch: None, kernel: text(), instructions: 1, milliseconds: 2 },
                json!({"running": {
                    "dispatch": null, "kernel": "t", "instructions": 1, "milliseconds": 2,
                }}),
            ),
            (
                Event::Executed { dispatch: None, kernel: text(), instructions: 1 },
                json!({"executed": {"dispatch": null, "kernel": "t", "instructions": 1}}),
            ),
            (Event::Violation { text: text() }, json!({"violation": {"text": "t"}})),
            (
                Event::Fidelity(FidelityRecord::default()),
                json!({"fidelity": {
                    "executions": {"exact": 0, "within_error": 0, "not_settled": 0},
                    "operations": [], "decisions": [],
                }}),
            ),
            (Event::NotCounted { what: text() }, json!({"not_counted": {"what": "t"}})),
            (Event::Failed { reason: text() }, json!({"failed": {"reason": "t"}})),
        ];
        for (event, expected) in events {
            let reported = ProcessEvent { process: "rank1.0".parse().expect("a path"), event };
            let value = serde_json::to_value(&reported).expect("JSON");
            assert_eq!(value, json!({"process": "rank1.0", "event": expected}));
        }
    }

    #[test]
    fn follower_reads_each_complete_event_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report");
        let mut follower = Follower::new(path.clone());
        assert_eq!(follower.read_new().expect("nothing yet"), []);
        let process: ProcessPath = "rank1.0".parse().expect("a path");
        let event = |text: &str| ProcessEvent {
            process: process.clone(),
            event: Event::Refused { text: text.to_owned() },
        };
        let mut report = Report::open(Some(&path), process.clone()).expect("a report");
        report.add(&event("one").event);
        assert_eq!(follower.read_new().expect("read"), [event("one")]);
        assert_eq!(follower.read_new().expect("read"), []);
        let mut line = serde_json::to_vec(&event("\u{3b1}")).expect("a line");
        line.push(b'\n');
        let mut file = File::options().append(true).open(&path).expect("the report");
        // Cuts the line inside a multi-byte character.
        let cut = line.iter().position(|byte| !byte.is_ascii()).expect("a character") + 1;
        file.write_all(&line[..cut]).expect("written");
        assert_eq!(follower.read_new().expect("read"), []);
        assert_eq!(read_report(&path).expect("read"), [event("one")]);
        file.write_all(&line[cut..]).expect("written");
        report.add(&event("three").event);
        assert_eq!(follower.read_new().expect("read"), [event("\u{3b1}"), event("three")]);
    }
}
