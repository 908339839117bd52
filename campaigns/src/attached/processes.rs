//! Which process of an application is planned on and struck.

use super::AttachError;
use crate::application::ProcessChoice;
use flipwave_agent::{Processes, TargetProcess};
use std::path::PathBuf;

/// The process that is struck.
pub(crate) struct Chosen {
    /// Its capture.
    pub capture: PathBuf,
    /// Its index, where several dispatch kernels.
    pub index: Option<u32>,
    /// How it is known in other runs.
    pub process: TargetProcess,
}

/// The process that `choice` names among those of a recorded run, or the only one.
///
/// # Errors
/// [`AttachError`] if there is none, or several.
pub(super) fn choose(
    processes: &Processes,
    choice: Option<&ProcessChoice>,
) -> Result<Chosen, AttachError> {
    let all: Vec<_> = processes.dispatching().enumerate().collect();
    if all.is_empty() {
        // One that has opened a GPU has an empty capture.
        let mut captures = processes.all().filter_map(|(_, record)| record.output.clone());
        let capture = captures.next().ok_or(AttachError::NoGpu)?;
        return Ok(Chosen { capture, index: None, process: TargetProcess::Any });
    }
    let is_meant = |(index, own)| choice.is_none_or(|choice| choice.is(index, own));
    let mut meant = all.iter().copied().filter(|own| is_meant(*own));
    let (first, second) = (meant.next(), meant.next());
    let list = || processes.to_string();
    let (index, (place, record)) = match (first, second, choice) {
        (Some(own), None, _) => own,
        (_, _, None) => return Err(AttachError::SeveralProcesses { list: list() }),
        (None, _, Some(choice)) => {
            return Err(AttachError::NoProcess { choice: choice.to_string(), list: list() });
        }
        (Some(_), Some(_), Some(choice)) => {
            return Err(AttachError::AmbiguousProcess { choice: choice.to_string(), list: list() });
        }
    };
    let process = match choice {
        None => TargetProcess::Any,
        Some(ProcessChoice::Rank(rank)) => TargetProcess::Rank(*rank),
        Some(ProcessChoice::Command(part)) => TargetProcess::Command(part.clone()),
        Some(ProcessChoice::Index(_)) => TargetProcess::Path(place.to_string()),
    };
    let capture = record.output.clone().ok_or(AttachError::NoGpu)?;
    let index = (all.len() > 1).then(|| u32::try_from(index)).transpose().unwrap_or_default();
    Ok(Chosen { capture, index, process })
}
