//! Severity of silent data corruption. The campaign's judge, a program or a server, receives the outputs of
//! each run with SDC and rates it. It runs for the whole campaign, so that a model or an interpreter is
//! loaded only once.
//!
//! `docs/severity.md` describes the protocol.

mod connection;
mod message;
#[cfg(test)]
mod tests;

use crate::application::CommandLine;
use crate::file::campaign::Campaign;
use crate::file::element::ElementType;
use crate::outputs::extents::Extents;
use connection::{Connection, WaitLimit};
use flipwave_analysis::Severity;
use flipwave_injector::Output;
use message::{Greeting, OutputDescription, Question};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Settings of a campaign's judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgeSettings {
    /// The judge.
    pub source: JudgeSource,
    /// Time limit of an answer.
    pub timeout: Duration,
}

/// Connection to the judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JudgeSource {
    /// A program. It is started once for each worker, with a socket as standard input.
    Command {
        /// Program and arguments.
        command: CommandLine,
        /// Working directory.
        directory: PathBuf,
    },
    /// A server that listens on a Unix socket.
    Socket(PathBuf),
}

/// Judgement of a run with SDC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Severity of the SDC.
    pub severity: Severity,
    /// Measured values, ordered by name: `cosine=0.98 top1=0`. `None` if the judge returned none.
    pub measures: Option<String>,
}

/// Error returned when a judge gives no valid judgement.
#[derive(Debug, thiserror::Error)]
#[error("severity: {judge}: {reason}")]
pub struct SeverityError {
    /// Description of the judge.
    judge: String,
    /// Cause, and what was expected.
    reason: String,
}

/// An output that is sent to the judge, with its content after the golden run.
pub(crate) struct ShownOutput<'a> {
    /// Index among the outputs of a run.
    index: usize,
    description: OutputDescription,
    golden: Cow<'a, [u8]>,
}

impl<'a> ShownOutput<'a> {
    /// Creates the description of output number `index`.
    pub fn new(
        index: usize,
        name: String,
        element: ElementType,
        extents: Option<Extents>,
        golden: Cow<'a, [u8]>,
    ) -> ShownOutput<'a> {
        let description = OutputDescription {
            name,
            element: element.name(),
            count: element.elements_in(golden.len() as u64).unwrap_or_default(),
            shape: extents.map(|extents| extents.dimensions().to_vec()),
            bytes: golden.len(),
        };
        ShownOutput { index, description, golden }
    }
}

/// The judge of a campaign, shared by all workers.
pub(crate) struct Judge<'a> {
    settings: &'a JudgeSettings,
    greeting: Greeting,
    golden: Vec<Cow<'a, [u8]>>,
    /// Indices of the outputs that are sent to the judge.
    shown: Vec<usize>,
    stopped: &'a Arc<AtomicBool>,
    idle: Mutex<Vec<Connection>>,
}

impl<'a> Judge<'a> {
    /// Returns the judge of a campaign, which receives `outputs`; `None` if the campaign has no judge.
    /// Does not connect yet.
    pub fn for_campaign(
        campaign: &'a Campaign,
        outputs: Vec<ShownOutput<'a>>,
    ) -> Option<Judge<'a>> {
        let settings = campaign.severity.as_ref()?;
        let shown = outputs.iter().map(|output| output.index).collect();
        let (described, golden) =
            outputs.into_iter().map(|output| (output.description, output.golden)).unzip();
        Some(Judge {
            settings,
            greeting: Greeting::new(&campaign.name, described),
            golden,
            shown,
            stopped: campaign.cancellation.stopped(),
            idle: Mutex::default(),
        })
    }

    /// Returns the judgement of injection `index` with these `outputs`.
    ///
    /// # Errors
    /// [`SeverityError`] if the judge cannot be reached, or gives no valid judgement.
    pub fn judge(&self, index: u64, outputs: &[Output]) -> Result<Judgement, SeverityError> {
        let bytes: Vec<Cow<'_, [u8]>> =
            self.shown.iter().map(|index| outputs[*index].bytes()).collect();
        let shown: Vec<&[u8]> = bytes.iter().map(|output| &**output).collect();
        let ask = || {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut connection = match idle {
                Some(connection) => connection,
                None => {
                    let golden = self.golden.iter().map(|output| &**output);
                    let wait_limit = WaitLimit {
                        stopped: Arc::clone(self.stopped),
                        timeout: self.settings.timeout,
                    };
                    Connection::open(&self.settings.source, wait_limit, &self.greeting, golden)?
                }
            };
            let question = Question { index, bytes: self.greeting.changed_lengths(&shown) };
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
        // Close all connections before waiting for the first process.
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
