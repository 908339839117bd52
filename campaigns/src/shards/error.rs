//! Errors of shards.

use super::plan::ShardPlan;
use crate::results::folder::FolderError;
use std::path::PathBuf;

/// Errors returned when shards cannot be executed or merged.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// The folder has no plan.
    #[error(
        "no shard plan in {}; start a sharded campaign with `flipwave run FILE --shard 1/N` or \
         `flipwave submit`", path.display()
    )]
    NoPlan {
        /// The folder.
        path: PathBuf,
    },
    /// A plan is invalid.
    #[error("{}: invalid shard plan: {what}", path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// The problem.
        what: String,
    },
    /// A plan has another format.
    #[error(
        "{}: unsupported shard plan format {format}, expected {}; start the campaign again in a new \
         folder with --out, or finish it with the Flipwave version that began it",
        path.display(), ShardPlan::FORMAT
    )]
    PlanFormat {
        /// The file.
        path: PathBuf,
        /// The format of the plan.
        format: u32,
    },
    /// The folder belongs to another campaign.
    #[error(
        "{} is the folder of another campaign: {difference}; choose another folder with --out",
        path.display()
    )]
    Other {
        /// The folder.
        path: PathBuf,
        /// The difference between the campaigns.
        difference: String,
    },
    /// A file has rows of another campaign.
    #[error(
        "{} has rows of another campaign or of another version of this one; remove it",
        path.display()
    )]
    OtherRows {
        /// The file.
        path: PathBuf,
    },
    /// A file of rows is damaged.
    #[error(
        "{} is damaged: {what}; run the part of the campaign with these rows again, which replaces \
         the file", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        what: String,
    },
    /// Rows are missing.
    #[error(
        "{} lacks the rows of injections {missing}; `flipwave status` shows their parts, and \
         `flipwave run FILE --shard FIRST..END` creates them", path.display()
    )]
    Missing {
        /// The folder.
        path: PathBuf,
        /// Description of the missing rows.
        missing: String,
    },
    /// Two files have different rows with the same index.
    #[error(
        "row {index} differs between {} and {}: the program is not deterministic across the \
         machines that created them; remove the wrong file",
        first.display(), second.display()
    )]
    Contradiction {
        /// Index of the row.
        index: u64,
        /// A file with the row.
        first: PathBuf,
        /// Another file with the row.
        second: PathBuf,
    },
    /// A file or folder cannot be accessed.
    #[error(transparent)]
    Folder(#[from] FolderError),
}
