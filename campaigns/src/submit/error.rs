//! Why a campaign cannot be handed over.

use std::io;
use std::path::PathBuf;

/// How often a shard is tried before it is given up.
pub(super) const ATTEMPTS: u32 = 3;

/// A campaign that cannot be handed over.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The engine's program is not there.
    #[error("cannot run `{program}`: {reason}; {hint}")]
    Missing {
        /// The program.
        program: String,
        /// Why not.
        reason: io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// The engine's program was ended with this one.
    #[error("interrupted while `{program}` was running")]
    Interrupted {
        /// The program.
        program: String,
    },
    /// The engine refused.
    #[error("`{command}` failed: {message}")]
    Refused {
        /// What was run.
        command: String,
        /// What it said.
        message: String,
    },
    /// A path that cannot be part of a script.
    #[error(
        "{path:?} has a line end, another control character, or bytes that are no UTF-8, which no script \
         of a batch system can have; choose another folder"
    )]
    Lines {
        /// The path.
        path: PathBuf,
    },
    /// A script cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Script {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: io::Error,
    },
    /// What an engine does not have.
    #[error("{what} is for {only}; leave it out")]
    Unsupported {
        /// The option.
        what: &'static str,
        /// Who has it.
        only: &'static str,
    },
    /// Shards that were given up.
    #[error(
        "{} shards were given up after {ATTEMPTS} attempts each: {}; `flipwave status` shows why",
        shards.len(), list(shards)
    )]
    GivenUp {
        /// Their numbers.
        shards: Vec<u64>,
    },
}

fn list(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}
