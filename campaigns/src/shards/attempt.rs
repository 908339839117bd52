//! Records of attempts to execute a part, for `flipwave status`. Only the rows decide which
//! injections are done.

use super::layout::SharedFolder;
use super::part::Part;
use crate::results::folder::FolderError;
use crate::results::lock::{FileLock, Life, Owner};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Interval at which a running attempt updates its record.
const PERIOD: Duration = Duration::from_secs(20);

/// Number of intervals without an update after which an attempt counts as ended.
const SILENT_PERIODS: u32 = 9;

/// State of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptState {
    /// Running or killed.
    Running,
    /// All rows of the part have been published.
    Done,
    /// Cancelled; the completed rows have been published.
    Interrupted,
    /// Failed.
    Failed,
}

/// An attempt of one process to execute a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Attempt {
    /// The part as given by the user.
    pub part: String,
    pub owner: Owner,
    pub state: AttemptState,
    /// Number of completed injections.
    pub done: u64,
    /// Seconds before the first injection.
    pub start_seconds: f64,
    /// Seconds of injections so far.
    pub seconds: f64,
    /// Start of the attempt, in seconds since 1970.
    pub began: u64,
    /// Time of the last update, in seconds since 1970.
    pub seen: u64,
    /// Error message of a failed attempt.
    pub error: Option<String>,
}

/// The attempt of this process.
pub(super) struct CurrentAttempt {
    path: PathBuf,
    pub record: Attempt,
    next_update: Instant,
}

impl CurrentAttempt {
    /// Records the start of an attempt.
    pub fn begin(folder: &SharedFolder, part: &Part) -> Result<CurrentAttempt, FolderError> {
        let failed = |reason| FolderError::Access { path: folder.path().to_owned(), reason };
        let owner = Owner::current().map_err(failed)?;
        let path = folder.attempt(part, &owner.token);
        let record = Attempt {
            part: part.to_string(),
            owner,
            state: AttemptState::Running,
            done: 0,
            start_seconds: 0.0,
            seconds: 0.0,
            began: now(),
            seen: 0,
            error: None,
        };
        let mut attempt = CurrentAttempt { path, record, next_update: Instant::now() };
        attempt.write()?;
        Ok(attempt)
    }

    /// Updates the progress in the record, if the last update was an interval ago.
    pub fn progress(&mut self, done: u64, seconds: f64) -> Result<(), FolderError> {
        if Instant::now() < self.next_update {
            return Ok(());
        }
        (self.record.done, self.record.seconds) = (done, seconds);
        self.write()
    }

    /// Returns `true` if another attempt is running.
    pub fn others_are_running(&self, folder: &SharedFolder) -> Result<bool, FolderError> {
        let observer = &self.record.owner;
        let attempts = Attempt::read_all(folder)?;
        Ok(attempts
            .iter()
            .any(|attempt| attempt.owner.token != observer.token && attempt.is_running(observer)))
    }

    /// Writes the record.
    pub fn write(&mut self) -> Result<(), FolderError> {
        self.next_update = Instant::now() + PERIOD;
        self.record.seen = now();
        let write = || -> io::Result<()> {
            let mut text = serde_json::to_vec_pretty(&self.record)?;
            text.push(b'\n');
            flipwave_host::output::replace(&self.path, &text)
        };
        write().map_err(|reason| FolderError::Access { path: self.path.clone(), reason })
    }
}

impl Attempt {
    /// Reads the attempts in a folder, ordered by start. Skips unreadable files.
    pub fn read_all(folder: &SharedFolder) -> Result<Vec<Attempt>, FolderError> {
        let read = |path: PathBuf| {
            serde_json::from_slice(
                &flipwave_host::input::read(&path, flipwave_host::input::RECORD).ok()?,
            )
            .ok()
        };
        let mut all: Vec<Attempt> = folder.attempts()?.into_iter().filter_map(read).collect();
        // Of two attempts that began in the same second, the running one is the later.
        let order = |attempt: &Attempt| {
            (attempt.owner.since.clone(), attempt.state == AttemptState::Running)
        };
        all.sort_by_cached_key(order);
        Ok(all)
    }

    /// Returns `true` if the attempt is running, as far as the process `observer` can see: its
    /// state is [`AttemptState::Running`], and its process is alive, or invisible with a recent
    /// update.
    pub fn is_running(&self, observer: &Owner) -> bool {
        let silence = Duration::from_secs(now().saturating_sub(self.seen));
        self.state == AttemptState::Running
            && match self.owner.life(observer, FileLock::Unknown) {
                Life::Alive => true,
                Life::Ended => false,
                Life::Unseen => silence < PERIOD * SILENT_PERIODS,
            }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialized_attempts_are_fixed() {
        let attempt = Attempt {
            part: "3/200".to_owned(),
            owner: Owner { host: "node17".to_owned(), token: "t".to_owned(), ..Owner::default() },
            state: AttemptState::Failed,
            done: 5,
            start_seconds: 0.5,
            seconds: 2.5,
            began: 1_700_000_000,
            seen: 1_700_000_003,
            error: Some("no memory".to_owned()),
        };
        let text = serde_json::to_string(&attempt).expect("JSON");
        assert_eq!(
            text,
            "{\"part\":\"3/200\",\"owner\":{\"host\":\"node17\",\"machine\":\"\",\"boot\":\"\",\
             \"pid_namespace\":\"\",\"process\":0,\"started\":0,\"command\":\"\",\"since\":\"\",\
             \"token\":\"t\"},\"state\":\"failed\",\"done\":5,\"start_seconds\":0.5,\
             \"seconds\":2.5,\"began\":1700000000,\"seen\":1700000003,\"error\":\"no memory\"}"
        );
        assert_eq!(serde_json::from_str::<Attempt>(&text).expect("an attempt"), attempt);
        let states = [
            AttemptState::Running,
            AttemptState::Done,
            AttemptState::Interrupted,
            AttemptState::Failed,
        ];
        let text = serde_json::to_string(&states).expect("JSON");
        assert_eq!(text, r#"["running","done","interrupted","failed"]"#);
    }
}
