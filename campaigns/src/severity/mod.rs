//! How bad silent data corruption is: what the campaign's judge says of outputs, a program or a server
//! that is asked about each run that came to SDC. It stays for the whole campaign, so that loading a
//! model or an interpreter is paid for once.
//!
//! The protocol is on the page about severity in the book.

mod connection;
mod message;
#[cfg(test)]
mod tests;

use crate::application::CommandLine;
use crate::file::campaign::Campaign;
use crate::file::element::ElementType;
use crate::outputs::extents::Extents;
use connection::{Connection, Patience};
use flipwave_analysis::Severity;
use flipwave_injector::Output;
use message::{Greeting, OutputDescription, Question};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The judge of a campaign, as its file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgeSettings {
    /// Who judges.
    pub source: JudgeSource,
    /// How long an answer may take.
    pub timeout: Duration,
}

/// Who judges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JudgeSource {
    /// A program, started once for each worker, whose standard input is a socket.
    Command {
        /// The program.
        command: CommandLine,
        /// Where it runs.
        directory: PathBuf,
    },
    /// A server that listens at a Unix socket.
    Socket(PathBuf),
}

/// What is said of a run that came to SDC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// How bad it is.
    pub severity: Severity,
    /// What was measured for that, `cosine=0.98 top1=0` by name; nothing if nothing was.
    pub measures: Option<String>,
}

/// A judge that gives no judgement.
#[derive(Debug, thiserror::Error)]
#[error("severity: {judge}: {reason}")]
pub struct SeverityError {
    /// Who judges.
    judge: String,
    /// What went wrong, and what was expected.
    reason: String,
}

/// An output that a judge is shown, as the fault-free run left it.
pub(crate) struct ShownOutput<'a> {
    /// Which of a run's outputs it is.
    place: usize,
    description: OutputDescription,
    golden: Cow<'a, [u8]>,
}

impl<'a> ShownOutput<'a> {
    /// The output at a place among all that runs leave, of elements of a type.
    pub fn new(
        (place, name): (usize, String),
        (element, extents): (ElementType, Option<Extents>),
        golden: Cow<'a, [u8]>,
    ) -> ShownOutput<'a> {
        let description = OutputDescription {
            name,
            element: element.name(),
            count: element.elements_in(golden.len() as u64).unwrap_or_default(),
            shape: extents.map(|extents| extents.dimensions().to_vec()),
            bytes: golden.len(),
        };
        ShownOutput { place, description, golden }
    }
}

/// The judge of a campaign, for all of its workers.
pub(crate) struct Judge<'a> {
    settings: &'a JudgeSettings,
    greeting: Greeting,
    golden: Vec<Cow<'a, [u8]>>,
    /// Which of a run's outputs it is shown.
    places: Vec<usize>,
    stopped: &'a Arc<AtomicBool>,
    idle: Mutex<Vec<Connection>>,
}

impl<'a> Judge<'a> {
    /// The judge of a campaign, who is shown `outputs`; nothing where it has none. Nobody is asked yet.
    pub fn of(campaign: &'a Campaign, outputs: Vec<ShownOutput<'a>>) -> Option<Judge<'a>> {
        let settings = campaign.severity.as_ref()?;
        let places = outputs.iter().map(|own| own.place).collect();
        let (described, golden) =
            outputs.into_iter().map(|own| (own.description, own.golden)).unzip();
        Some(Judge {
            settings,
            greeting: Greeting::new(&campaign.name, described),
            golden,
            places,
            stopped: campaign.cancellation.stopped(),
            idle: Mutex::default(),
        })
    }

    /// What is said of injection `index`, which left `outputs`.
    ///
    /// # Errors
    /// [`SeverityError`] if the judge cannot be asked, or gives no judgement.
    pub fn judge(&self, index: u64, outputs: &[Output]) -> Result<Judgement, SeverityError> {
        let bytes: Vec<Cow<'_, [u8]>> =
            self.places.iter().map(|place| outputs[*place].bytes()).collect();
        let shown: Vec<&[u8]> = bytes.iter().map(|own| &**own).collect();
        let ask = || {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut connection = match idle {
                Some(connection) => connection,
                None => {
                    let golden = self.golden.iter().map(|own| &**own);
                    let patience = Patience {
                        stopped: Arc::clone(self.stopped),
                        timeout: self.settings.timeout,
                    };
                    Connection::open(&self.settings.source, patience, &self.greeting, golden)?
                }
            };
            let question = Question { index, bytes: self.greeting.other_lengths(&shown) };
            let judgement = connection.ask(&question, shown.iter().copied())?;
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            Ok(judgement)
        };
        ask().map_err(|reason: String| SeverityError {
            judge: self.settings.source.to_string(),
            reason,
        })
    }
}

impl Drop for Judge<'_> {
    fn drop(&mut self) {
        // All are told before the first is waited for.
        let idle = self.idle.get_mut().unwrap_or_else(PoisonError::into_inner);
        idle.iter().for_each(Connection::close);
    }
}

impl std::fmt::Display for JudgeSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            JudgeSource::Command { command, .. } => write!(f, "`{command}`"),
            JudgeSource::Socket(path) => write!(f, "the server at {}", path.display()),
        }
    }
}
