//! What can be wrong with a capture.

use std::path::{Path, PathBuf};

/// A file that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// It cannot be opened.
    #[error("{}: {reason}", file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// Why not.
        reason: std::io::Error,
    },
    /// Something else than a capture.
    #[error("{}: {what}; expected a file of `flipwave capture`", file.display())]
    NoCapture {
        /// The file.
        file: PathBuf,
        /// What it is, or has.
        what: String,
    },
    /// More data than there is memory for.
    #[error(
        "{}: its data take more than the {} MiB of memory that are left here; choose some of its \
         dispatches, or use a machine with more memory", file.display(), available >> 20
    )]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// Bytes that were available.
        available: u64,
    },
    /// SQLite cannot do it.
    #[error("{}: {reason}", file.display())]
    Database {
        /// The file.
        file: PathBuf,
        /// Why not.
        reason: rusqlite::Error,
    },
    /// Another version of the format.
    #[error("{}: the capture has format {found}, expected {expected}; record it again", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// Its format.
        found: i64,
        /// The format that is known here.
        expected: i64,
    },
    /// A file that says what cannot be.
    #[error("{}: {what}; the file is damaged, record it again", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl CaptureError {
    /// The same, of a file.
    pub(crate) fn database(file: &Path) -> impl Fn(rusqlite::Error) -> CaptureError + '_ {
        |reason| CaptureError::Database { file: file.to_owned(), reason }
    }
}
