//! What the library reports to the program that has started the application: one event per line, as
//! JSON, written when it happens, so that it is there whatever becomes of the application. All
//! processes of an application write to one report.

use flipwave_injector::{FidelityRecord, Struck};
use flipwave_process_tree::ProcessPath;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// An event, and the process in which it happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reported {
    /// The process's place in the tree of the application.
    #[serde(with = "place_text")]
    pub process: ProcessPath,
    /// What happened.
    pub event: Event,
}

/// Places as text.
mod place_text {
    use flipwave_process_tree::ProcessPath;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(place: &ProcessPath, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(place)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ProcessPath, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Something that happened in the application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A program has opened a GPU.
    Opened {
        /// The process's number.
        pid: u32,
        /// The program and its arguments.
        command: String,
    },
    /// A program dispatches a kernel of its own for the first time.
    Dispatches,
    /// A program dispatches a kernel for the first time, where a tool looks at kernels.
    Kernel {
        /// Its name.
        name: String,
    },
    /// What a tool has to say beside its table.
    Remark {
        /// In words.
        text: String,
    },
    /// A process writes its table or its capture to a file.
    Writes {
        /// The file.
        file: PathBuf,
    },
    /// The fault was injected: the value before and after, and how many words were struck.
    Struck {
        /// The first value struck, as it was.
        before: u64,
        /// What the fault made of it.
        after: u64,
        /// Words struck until the end of the dispatch.
        words: u64,
        /// Whether the value went into a sum which came out the same.
        absorbed: bool,
    },
    /// The fault's place was reached, and nothing could be struck there.
    NotStruck {
        /// Why not.
        reason: String,
    },
    /// A dispatch was stopped.
    Fault {
        /// Its number; nothing for the runtime's own.
        dispatch: Option<u32>,
        /// Its kernel.
        kernel: String,
        /// The name under which results are filed, `memory_violation`.
        cause: String,
        /// All of it, in words.
        text: String,
    },
    /// A packet was not executed.
    Refused {
        /// Which, and why, in words.
        text: String,
    },
    /// A dispatch has been running for long.
    Running {
        /// Its number; nothing for the runtime's own.
        dispatch: Option<u32>,
        /// Its kernel.
        kernel: String,
        /// Wave instructions so far; 0 where that is not known before its end.
        instructions: u64,
        /// How long.
        milliseconds: u64,
    },
    /// A dispatch has ended, where that is counted.
    Executed {
        /// Its number; nothing for the runtime's own.
        dispatch: Option<u32>,
        /// Its kernel.
        kernel: String,
        /// Wave instructions.
        instructions: u64,
    },
    /// The rules of the hardware were broken.
    Violation {
        /// How, and where, in words.
        text: String,
    },
    /// A dispatch has ended, where that is followed: how exact what it executed is.
    Fidelity(FidelityRecord),
    /// A tool could not count all.
    NotCounted {
        /// What it did not count: how many sites, or which kernel.
        what: String,
    },
    /// The tool failed.
    Failed {
        /// Why.
        reason: String,
    },
}

impl Event {
    /// What a fault has struck.
    pub(crate) fn struck(struck: &Struck) -> Event {
        let Struck { before, after, words, absorbed } = *struck;
        Event::Struck { before, after, words, absorbed }
    }
}

/// A report being written by one process.
#[derive(Debug)]
pub struct Report {
    file: Option<File>,
    process: ProcessPath,
}

impl Report {
    /// A report of a process to a file; to nowhere without one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn to(file: Option<&Path>, process: ProcessPath) -> std::io::Result<Report> {
        let open = flipwave_host::output::append;
        Ok(Report { file: file.map(open).transpose()?, process })
    }

    /// Adds an event. What cannot be written is lost; whoever reads sees that it is missing.
    pub fn add(&mut self, event: &Event) {
        let reported = Reported { process: self.process.clone(), event: event.clone() };
        if let (Some(file), Ok(mut line)) = (&mut self.file, serde_json::to_vec(&reported)) {
            line.push(b'\n');
            // One write, so that events of several threads do not mix.
            let _ = file.write_all(&line);
        }
    }
}

/// Reads a report while it is written.
#[derive(Debug)]
pub struct Follower {
    file: PathBuf,
    /// Bytes that were read.
    read: u64,
}

impl Follower {
    /// Follows a report, which need not be there yet.
    pub fn new(file: PathBuf) -> Follower {
        Follower { file, read: 0 }
    }

    /// The events that have come since the last time.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn news(&mut self) -> std::io::Result<Vec<Reported>> {
        let mut file = match flipwave_host::input::open(&self.file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        file.seek(SeekFrom::Start(self.read))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        // A line that is not complete comes again.
        let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.read += end as u64;
        let lines = text[..end].split(|byte| *byte == b'\n');
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }
}

/// Reads a report. A last line that was cut off is left out.
///
/// # Errors
/// If the file cannot be read. One that is not there has no events.
pub fn read_report(file: &Path) -> std::io::Result<Vec<Reported>> {
    Follower::new(file.to_owned()).news()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_have_fixed_names() {
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
            (
                Event::Fault { dispatch: Some(1), kernel: text(), cause: text(), text: text() },
                json!({"fault": {"dispatch": 1, "kernel": "t", "cause": "t", "text": "t"}}),
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
            let reported = Reported { process: "rank1.0".parse().expect("a place"), event };
            let value = serde_json::to_value(&reported).expect("JSON");
            assert_eq!(value, json!({"process": "rank1.0", "event": expected}));
        }
    }

    #[test]
    fn each_event_is_read_once_when_all_of_it_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report");
        let mut follower = Follower::new(path.clone());
        assert_eq!(follower.news().expect("nothing yet"), []);
        let process: ProcessPath = "rank1.0".parse().expect("a place");
        let event = |text: &str| Reported {
            process: process.clone(),
            event: Event::Refused { text: text.to_owned() },
        };
        let mut report = Report::to(Some(&path), process.clone()).expect("a report");
        report.add(&event("one").event);
        assert_eq!(follower.news().expect("read"), [event("one")]);
        assert_eq!(follower.news().expect("read"), []);
        let mut line = serde_json::to_vec(&event("\u{3b1}")).expect("a line");
        line.push(b'\n');
        let mut file = File::options().append(true).open(&path).expect("the report");
        // In the middle of a letter.
        let cut = line.iter().position(|byte| !byte.is_ascii()).expect("a letter") + 1;
        file.write_all(&line[..cut]).expect("written");
        assert_eq!(follower.news().expect("read"), []);
        assert_eq!(read_report(&path).expect("read"), [event("one")]);
        file.write_all(&line[cut..]).expect("written");
        report.add(&event("three").event);
        assert_eq!(follower.news().expect("read"), [event("\u{3b1}"), event("three")]);
    }
}
