//! The process of an application that faults strike.

use super::schema;
use crate::file::location::{Field, FieldError, reject};
use flipwave_agent::{ProcessPath, ProcessRecord};
use std::fmt;

/// Which of the processes that dispatch kernels is struck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessChoice {
    /// The one of this MPI rank.
    Rank(u32),
    /// The one with this index, in the order in which they start.
    Index(u32),
    /// The one whose program and arguments contain this.
    Command(String),
}

impl ProcessChoice {
    /// Checks what a campaign file says at `field`.
    ///
    /// # Errors
    /// If it names none of the three, or several.
    pub(super) fn of(own: schema::Process, field: &Field) -> Result<ProcessChoice, FieldError> {
        match own {
            schema::Process { rank: Some(rank), index: None, command: None } => {
                Ok(ProcessChoice::Rank(rank))
            }
            schema::Process { rank: None, index: Some(index), command: None } => {
                Ok(ProcessChoice::Index(index))
            }
            schema::Process { rank: None, index: None, command: Some(command) } => {
                match command.is_empty() {
                    true => reject(&field.key("command"), "is empty; expected a part of a command"),
                    false => Ok(ProcessChoice::Command(command)),
                }
            }
            _ => reject(field, "expected one of `rank`, `index` and `command`"),
        }
    }

    /// Whether it means a process, which has this index.
    pub(crate) fn is(&self, index: usize, (place, record): (&ProcessPath, &ProcessRecord)) -> bool {
        match self {
            ProcessChoice::Rank(rank) => place.rank == Some(*rank),
            ProcessChoice::Index(own) => usize::try_from(*own) == Ok(index),
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
