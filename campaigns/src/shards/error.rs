//! Why parts of a campaign cannot be put together.

use super::plan::ShardPlan;
use crate::results::folder::FolderError;
use std::path::PathBuf;

/// Parts of a campaign that cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// There is no campaign in parts.
    #[error(
        "{} has no plan of a campaign in shards; begin one with `flipwave run FILE --shard 1/N` or \
         `flipwave submit`", path.display()
    )]
    NoPlan {
        /// The folder.
        path: PathBuf,
    },
    /// A plan that cannot be read.
    #[error("{}: invalid shard plan: {what}", path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The plan is of another format.
    #[error(
        "{}: unsupported shard plan format {format}, expected {}; start the campaign again in a new \
         folder with --out, or finish it with the Flipwave version that began it",
        path.display(), ShardPlan::FORMAT
    )]
    PlanFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// The folder is another campaign's.
    #[error(
        "{} is the folder of another campaign: {difference}; choose another folder with --out",
        path.display()
    )]
    Other {
        /// The folder.
        path: PathBuf,
        /// In what they differ.
        difference: String,
    },
    /// Rows of another campaign are among those of this one.
    #[error(
        "{} has rows of another campaign or of another version of this one; remove it",
        path.display()
    )]
    OtherRows {
        /// The file.
        path: PathBuf,
    },
    /// A file of rows is not as it was written.
    #[error(
        "{} is damaged: {what}; run the part of the campaign again that has these rows, and it is \
         written anew", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Rows are not there.
    #[error(
        "{} lacks the rows of injections {missing}; `flipwave status` shows whose they are, and \
         `flipwave run FILE --shard FIRST..END` makes them", path.display()
    )]
    Missing {
        /// The folder.
        path: PathBuf,
        /// Which, for people.
        missing: String,
    },
    /// Two files have a row in different ways.
    #[error(
        "row {index} is one in {} and another in {}: the program does not do the same on the \
         machines that made them; remove the file that is wrong",
        one.display(), other.display()
    )]
    Contradiction {
        /// The row.
        index: u64,
        /// A file that has it.
        one: PathBuf,
        /// Another one.
        other: PathBuf,
    },
    /// The folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
}
