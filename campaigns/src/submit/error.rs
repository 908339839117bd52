//! Errors of submitting a campaign.

use std::io;
use std::path::PathBuf;

/// Number of attempts to run a shard before it counts as failed.
pub(super) const ATTEMPTS: u32 = 3;

/// Errors returned when a campaign cannot be submitted.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The program of the batch system cannot be run.
    #[error("cannot run `{program}`: {reason}; {hint}")]
    Missing {
        /// The program.
        program: String,
        /// Cause.
        reason: io::Error,
        /// Advice.
        hint: &'static str,
    },
    /// The program of the batch system was interrupted.
    #[error("interrupted while `{program}` was running")]
    Interrupted {
        /// The program.
        program: String,
    },
    /// The program of the batch system failed.
    #[error("`{command}` failed: {message}")]
    Refused {
        /// Command line.
        command: String,
        /// Exit status and output.
        message: String,
    },
    /// A path cannot be part of a script.
    #[error(
        "invalid path {path:?}: scripts of batch systems cannot contain line breaks, other control \
         characters, or invalid UTF-8; choose another folder"
    )]
    Lines {
        /// The path.
        path: PathBuf,
    },
    /// A script cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Script {
        /// Path of the script.
        path: PathBuf,
        /// Cause.
        reason: io::Error,
    },
    /// The engine does not support an option.
    #[error("{what} is only supported by {only}; remove it")]
    Unsupported {
        /// Option.
        what: &'static str,
        /// Engines that support it.
        only: &'static str,
    },
    /// Shards failed in all attempts.
    #[error(
        "{} shards failed after {ATTEMPTS} attempts each: {}; `flipwave status` shows the errors",
        shards.len(), list(shards)
    )]
    Failed {
        /// Numbers of the shards.
        shards: Vec<u64>,
    },
}

fn list(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}
