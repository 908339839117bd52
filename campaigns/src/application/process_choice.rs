//! The target process of an application.

use super::schema;
use crate::file::location::{Field, FieldError, reject};
use flipwave_agent::{ProcessPath, ProcessRecord};
use std::fmt;

/// Selects the target process among the processes that dispatch kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessChoice {
    /// By MPI rank.
    Rank(u32),
    /// By index, in the order in which the processes start.
    Index(u32),
    /// By a part of its program and arguments.
    Command(String),
}

impl ProcessChoice {
    /// Checks the choice in a campaign file at `field`.
    ///
    /// # Errors
    /// If not exactly one property is given, or the command is empty.
    pub(super) fn check(
        choice: schema::Process,
        field: &Field,
    ) -> Result<ProcessChoice, FieldError> {
        match choice {
            schema::Process { rank: Some(rank), index: None, command: None } => {
                Ok(ProcessChoice::Rank(rank))
            }
            schema::Process { rank: None, index: Some(index), command: None } => {
                Ok(ProcessChoice::Index(index))
            }
            schema::Process { rank: None, index: None, command: Some(command) } => {
                if command.is_empty() {
                    reject(&field.key("command"), "is empty; expected a part of a command")
                } else {
                    Ok(ProcessChoice::Command(command))
                }
            }
            _ => reject(field, "expected exactly one of `rank`, `index` and `command`"),
        }
    }

    /// Returns `true` if the choice selects the process with this index, path and record.
    pub(crate) fn selects(&self, index: usize, path: &ProcessPath, record: &ProcessRecord) -> bool {
        match self {
            ProcessChoice::Rank(rank) => path.rank == Some(*rank),
            ProcessChoice::Index(selected) => usize::try_from(*selected) == Ok(index),
            ProcessChoice::Command(part) => record.command.contains(part),
        }
    }
}

impl fmt::Display for ProcessChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessChoice::Rank(rank) => write!(f, "{{rank: {rank}}}"),
            ProcessChoice::Index(index) => write!(f, "{{index: {index}}}"),
            ProcessChoice::Command(part) => write!(f, "{{command: {part}}}"),
        }
    }
}
