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
use crate::campaign::Campaign;
use crate::compare::{OutputFormat, OutputRole};
use crate::prepare::Prepared;
use connection::Connection;
use flipwave_analysis::Severity;
use flipwave_injector::Golden;
use message::{Greeting, OutputDescription};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

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

/// The judge of a campaign, for all of its workers.
pub(crate) struct Judge<'a> {
    source: &'a JudgeSource,
    greeting: Greeting,
    golden: &'a Golden,
    /// Which of a workload's outputs it is shown.
    shown: Vec<bool>,
    stopped: &'a Arc<AtomicBool>,
    idle: Mutex<Vec<Connection>>,
}

impl<'a> Judge<'a> {
    /// The judge of a campaign, beside its fault-free run; nothing where it has none. Nobody is asked
    /// yet.
    pub fn of(
        campaign: &'a Campaign,
        prepared: &Prepared,
        golden: &'a Golden,
    ) -> Option<Judge<'a>> {
        let source = campaign.severity.as_ref()?;
        let is_result = |format: &OutputFormat| matches!(format.role, OutputRole::Result(_));
        let outputs = prepared.workload.program.outputs.iter().zip(&prepared.formats);
        let described = outputs.filter(|(_, format)| is_result(format)).map(|(buffer, format)| {
            OutputDescription {
                name: buffer.name.clone(),
                element: format.element.name(),
                count: format.element.elements_in(buffer.bytes as u64).unwrap_or_default(),
                shape: format.extents.map(|extents| extents.dimensions().to_vec()),
                bytes: buffer.bytes,
            }
        });
        Some(Judge {
            source,
            greeting: Greeting::new(&campaign.name, described.collect()),
            golden,
            shown: prepared.formats.iter().map(is_result).collect(),
            stopped: campaign.attendance.stopped(),
            idle: Mutex::default(),
        })
    }

    /// What is said of the outputs of injection `index`.
    ///
    /// # Errors
    /// [`SeverityError`] if the judge cannot be asked, or gives no judgement.
    pub fn judge(&self, index: u64, outputs: &[Vec<u8>]) -> Result<Judgement, SeverityError> {
        let ask = || {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut connection = match idle {
                Some(connection) => connection,
                None => {
                    let golden = self.shown(&self.golden.outputs);
                    Connection::open(self.source, self.stopped, &self.greeting, golden)?
                }
            };
            let judgement = connection.ask(index, self.shown(outputs))?;
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            Ok(judgement)
        };
        ask().map_err(|reason: String| SeverityError { judge: self.source.to_string(), reason })
    }

    fn shown<'o>(&self, outputs: &'o [Vec<u8>]) -> impl Iterator<Item = &'o [u8]> {
        let shown = outputs.iter().zip(self.shown.clone()).filter(|(_, is_shown)| *is_shown);
        shown.map(|(output, _)| output.as_slice())
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
