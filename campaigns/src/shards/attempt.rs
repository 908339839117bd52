//! Who tried to do which part, and what came of it: for people, and for `flipwave status`. What is done
//! is decided by the rows alone.

use super::layout::SharedFolder;
use super::part::Part;
use crate::results::folder::FolderError;
use crate::results::lock::{FileLock, Life, Owner};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often an attempt that runs says how far it is.
const PERIOD: Duration = Duration::from_secs(20);

/// Periods after which an attempt that says nothing is taken to have ended.
const SILENT_PERIODS: u32 = 9;

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptState {
    /// It is under way, or was killed.
    Running,
    /// All of the part is there.
    Done,
    /// It was asked to stop; what it had done is there.
    Interrupted,
    /// It failed.
    Failed,
}

/// One process that did a part, or tried to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Attempt {
    /// The part, as it was asked for.
    pub part: String,
    pub owner: Owner,
    pub state: AttemptState,
    /// Rows that it has made.
    pub done: u64,
    /// Seconds before the first injection.
    pub start_seconds: f64,
    /// Seconds that injections took so far.
    pub seconds: f64,
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// When it said this, in seconds since 1970.
    pub seen: u64,
    /// Why it failed.
    pub error: Option<String>,
}

/// The attempt of this process.
pub(super) struct OwnAttempt {
    path: PathBuf,
    pub record: Attempt,
    next: Instant,
}

impl OwnAttempt {
    /// Says that this process begins.
    pub fn begin(folder: &SharedFolder, part: &Part) -> Result<OwnAttempt, FolderError> {
        let failed = |reason| FolderError::Access { path: folder.path().to_owned(), reason };
        let owner = Owner::this().map_err(failed)?;
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
        let mut own = OwnAttempt { path, record, next: Instant::now() };
        own.write()?;
        Ok(own)
    }

    /// Says how far it is, if it has not said so for some time.
    pub fn progress(&mut self, done: u64, seconds: f64) -> Result<(), FolderError> {
        if Instant::now() < self.next {
            return Ok(());
        }
        (self.record.done, self.record.seconds) = (done, seconds);
        self.write()
    }

    /// Whether other attempts are under way.
    pub fn others_are_running(&self, folder: &SharedFolder) -> Result<bool, FolderError> {
        let own = &self.record.owner;
        let others = Attempt::all(folder)?;
        Ok(others.iter().any(|other| other.owner.token != own.token && other.is_running(own)))
    }

    /// Writes what it says.
    pub fn write(&mut self) -> Result<(), FolderError> {
        self.next = Instant::now() + PERIOD;
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
    /// The attempts in a folder, those that can be read, by when they began.
    pub fn all(folder: &SharedFolder) -> Result<Vec<Attempt>, FolderError> {
        let read = |path: PathBuf| {
            serde_json::from_slice(
                &flipwave_host::input::read(&path, flipwave_host::input::RECORD).ok()?,
            )
            .ok()
        };
        let mut all: Vec<Attempt> = folder.attempts()?.into_iter().filter_map(read).collect();
        // Of two of the same second, the one that has not ended is the later.
        let order = |own: &Attempt| (own.owner.since.clone(), own.state == AttemptState::Running);
        all.sort_by_cached_key(order);
        Ok(all)
    }

    /// Whether it runs, as far as can be seen by `own` process: it has not said that it has ended, and
    /// is there, or on another machine and not silent for long.
    pub fn is_running(&self, own: &Owner) -> bool {
        let silence = Duration::from_secs(now().saturating_sub(self.seen));
        self.state == AttemptState::Running
            && match self.owner.life(own, FileLock::Unknown) {
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
    fn attempts_have_a_fixed_text() {
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
