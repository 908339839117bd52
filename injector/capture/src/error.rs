//! Errors of captures.

use std::path::{Path, PathBuf};

/// Errors returned when writing or reading a capture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be opened.
    #[error("{}: {reason}", file.display())]
    Open {
        /// Path of the file.
        file: PathBuf,
        /// Error of the system.
        reason: std::io::Error,
    },
    /// The file is not a capture.
    #[error("{}: {what}; expected a file of `flipwave capture`", file.display())]
    NotACapture {
        /// Path of the file.
        file: PathBuf,
        /// Difference from a capture.
        what: String,
    },
    /// The data do not fit into memory.
    #[error(
        "{}: the data need more than the {} MiB of available memory; choose some of the \
         dispatches, or use a machine with more memory", file.display(), available >> 20
    )]
    TooLarge {
        /// Path of the file.
        file: PathBuf,
        /// Bytes of available memory.
        available: u64,
    },
    /// SQLite returned an error.
    #[error("{}: {reason}", file.display())]
    Database {
        /// Path of the file.
        file: PathBuf,
        /// Error of SQLite.
        reason: rusqlite::Error,
    },
    /// The capture has another version of the format.
    #[error("{}: the capture has format {found}, expected {expected}; record it again", file.display())]
    Format {
        /// Path of the file.
        file: PathBuf,
        /// Format of the file.
        found: i64,
        /// Supported format.
        expected: i64,
    },
    /// The capture has missing or invalid content.
    #[error("{}: {what}; the file is damaged, record it again", file.display())]
    Damaged {
        /// Path of the file.
        file: PathBuf,
        /// Description of the damage.
        what: String,
    },
}

impl CaptureError {
    /// Converts SQLite's errors for a file.
    pub(crate) fn database(file: &Path) -> impl Fn(rusqlite::Error) -> CaptureError + '_ {
        |reason| CaptureError::Database { file: file.to_owned(), reason }
    }
}
