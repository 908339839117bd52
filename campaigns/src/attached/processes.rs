//! Selection of the target process of an application.

use super::AttachError;
use crate::application::ProcessChoice;
use flipwave_agent::{Processes, TargetProcess};
use std::path::PathBuf;

/// The target process.
pub(crate) struct Chosen {
    /// Capture of the process.
    pub capture: PathBuf,
    /// Index of the process, if several dispatch kernels.
    pub index: Option<u32>,
    /// Identifies the process in other runs.
    pub process: TargetProcess,
}

/// Selects the process of a recorded run that `choice` names, or the only one.
///
/// # Errors
/// [`AttachError`] unless exactly one process is selected.
pub(super) fn choose(
    processes: &Processes,
    choice: Option<&ProcessChoice>,
) -> Result<Chosen, AttachError> {
    let dispatching: Vec<_> = processes.dispatching().enumerate().collect();
    if dispatching.is_empty() {
        // A process that has opened a GPU without dispatching kernels has an empty capture.
        let mut captures = processes.all().filter_map(|(_, record)| record.output.clone());
        let capture = captures.next().ok_or(AttachError::NoGpu)?;
        return Ok(Chosen { capture, index: None, process: TargetProcess::Any });
    }
    let mut selected = dispatching.iter().copied().filter(|(index, (path, record))| {
        choice.is_none_or(|choice| choice.selects(*index, path, record))
    });
    let (first, second) = (selected.next(), selected.next());
    let list = || processes.to_string();
    let (index, (path, record)) = match (first, second, choice) {
        (Some(process), None, _) => process,
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
        Some(ProcessChoice::Index(_)) => TargetProcess::Path(path.to_string()),
    };
    let capture = record.output.clone().ok_or(AttachError::NoGpu)?;
    let index =
        (dispatching.len() > 1).then(|| u32::try_from(index)).transpose().unwrap_or_default();
    Ok(Chosen { capture, index, process })
}
