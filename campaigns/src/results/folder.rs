//! Results folders: their files, and the checks before results are written or replaced.

use crate::results::lock::{FolderLock, LOCK, LOCK_PREFIX, LockError};
use flipwave_host::output::UNFINISHED_PREFIX;
use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

/// The files of a results folder.
pub(crate) const RESULTS: &str = "results.csv";
pub(crate) const PARQUET: &str = "results.parquet";
pub(crate) const SUMMARY: &str = "summary.csv";
pub(crate) const RATES: &str = "rates.svg";
pub(crate) const RECORD: &str = "run.json";
/// Subfolder of plans in the folder of a sharded campaign.
pub(crate) const PLANS: &str = "plans";
const FILES: [&str; 5] = [RESULTS, PARQUET, SUMMARY, RATES, RECORD];

/// Errors returned when a results folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder contains something else.
    #[error(
        "{} {found}; choose another folder with --out, or replace the files in it with --force",
        path.display()
    )]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// Description of the content, as a predicate.
        found: String,
    },
    /// The folder belongs to a sharded campaign.
    #[error(
        "{} contains a sharded campaign; add shards with --shard I/N, merge them with \
         `flipwave merge`, or choose another folder with --out", path.display()
    )]
    InShards {
        /// The folder.
        path: PathBuf,
    },
    /// The folder contains results of this campaign.
    #[error(
        "{} contains results of this campaign (rows: {rows}); continue with --resume, or replace \
         them with --force", path.display()
    )]
    Results {
        /// The folder.
        path: PathBuf,
        /// Number of rows.
        rows: u64,
    },
    /// The folder is locked or the lock was lost.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file or folder cannot be written.
    #[error("cannot write results to {}: {reason}", path.display())]
    Access {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        reason: std::io::Error,
    },
    /// A file or folder cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unread {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        reason: std::io::Error,
    },
}

/// Returns `true` for temporary files that exist while results are written.
pub(crate) fn is_temporary(name: &str) -> bool {
    name == LOCK || name.starts_with(LOCK_PREFIX) || name.starts_with(UNFINISHED_PREFIX)
}

/// Checks that results can be written to a locked folder: existing entries with the names of its
/// files are regular files. Removes incomplete files of killed runs.
///
/// # Errors
/// [`FolderError::Access`].
pub(crate) fn check_files(path: &Path) -> Result<(), FolderError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |reason| FolderError::Access { path, reason }
    };
    for name in FILES {
        let file = path.join(name);
        flipwave_host::output::check(&file).map_err(failed(&file))?;
    }
    for entry in std::fs::read_dir(path).map_err(failed(path))? {
        let entry = entry.map_err(failed(path))?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED_PREFIX) {
            flipwave_host::output::remove(&entry.path()).map_err(failed(&entry.path()))?;
        }
    }
    Ok(())
}

/// Checks that the folder contains no complete row, which would be lost.
///
/// # Errors
/// [`FolderError::Results`], [`FolderError::Access`].
pub(crate) fn check_no_results(path: &Path) -> Result<(), FolderError> {
    let file = path.join(RESULTS);
    let failed = |reason| FolderError::Access { path: file.clone(), reason };
    let text = match flipwave_host::input::open_lines(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => BufReader::new(file.map_err(failed)?),
    };
    let lines = line_ends(text).map_err(failed)?;
    match lines.saturating_sub(1) {
        0 => Ok(()),
        rows => Err(FolderError::Results { path: path.to_owned(), rows }),
    }
}

/// Number of complete lines in a text.
fn line_ends(mut text: impl BufRead) -> std::io::Result<u64> {
    let mut count = 0;
    loop {
        let block = text.fill_buf()?;
        if block.is_empty() {
            return Ok(count);
        }
        count += block.iter().filter(|byte| **byte == b'\n').count() as u64;
        let read = block.len();
        text.consume(read);
    }
}

/// Checks that results may be written to `path`: the folder is new or empty, or contains results of
/// the same campaign and seed. Does not change the folder.
///
/// # Errors
/// [`FolderError`].
pub(crate) fn check(path: &Path, content: &str, seed: u64) -> Result<(), FolderError> {
    let occupied =
        |found: &str| Err(FolderError::Occupied { path: path.to_owned(), found: found.to_owned() });
    let failed = |reason| FolderError::Access { path: path.to_owned(), reason };
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if path.join(PLANS).is_dir() {
        return Err(FolderError::InShards { path: path.to_owned() });
    }
    let mut is_free = true;
    for entry in entries {
        is_free &= is_temporary(&entry.map_err(failed)?.file_name().to_string_lossy());
    }
    if is_free {
        return Ok(());
    }
    let Ok(text) =
        flipwave_host::input::read_text(&path.join(RECORD), flipwave_host::input::RECORD)
    else {
        return occupied("contains files that are not results of Flipwave");
    };
    let record: Value = serde_json::from_str(&text).unwrap_or_default();
    if record["campaign"]["content"] == content && record["campaign"]["seed"] == seed {
        Ok(())
    } else {
        occupied("contains results of another campaign or of another version of this one")
    }
}

/// Removes the result files from a folder.
///
/// # Errors
/// [`FolderError::Lock`], [`FolderError::Access`].
pub(crate) fn clear(lock: &FolderLock) -> Result<(), FolderError> {
    for name in FILES {
        let file = lock.folder()?.join(name);
        let removed = flipwave_host::output::remove(&file);
        removed.map_err(|reason| FolderError::Access { path: file, reason })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    fn record(folder: &Path, text: &str) {
        std::fs::write(folder.join(RECORD), text).expect("written");
    }

    #[test]
    fn new_and_empty_folders_are_free() {
        let folder = folder();
        assert!(check(folder.path(), "d", 1).is_ok());
        assert!(check(&folder.path().join("new"), "d", 1).is_ok());
    }

    /// A run that is killed before its first result leaves such files.
    #[test]
    fn folders_with_only_temporary_files_are_free() {
        let folder = folder();
        for name in [LOCK, "flipwave.lock.after-0123", ".flipwave-abcdef"] {
            std::fs::write(folder.path().join(name), "").expect("written");
        }
        assert!(check(folder.path(), "d", 1).is_ok());
        check_files(folder.path()).expect("files");
        assert!(!folder.path().join(".flipwave-abcdef").exists());
    }

    #[test]
    fn complete_rows_are_protected() {
        let folder = folder();
        let rows = |text: &str| {
            std::fs::write(folder.path().join(RESULTS), text).expect("written");
            check_no_results(folder.path()).map_err(|error| error.to_string())
        };
        for without_rows in ["", "injection,si", "injection,site\n", "injection,site\n0,disp"] {
            rows(without_rows).expect("no complete row");
        }
        let error = rows("injection,site\n0,a\n1,b\n2,").expect_err("two whole rows");
        for word in ["rows: 2", "--resume", "--force"] {
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn only_results_of_the_same_campaign_and_seed_may_be_replaced() {
        let folder = folder();
        record(folder.path(), r#"{"campaign": {"content": "d", "seed": 1}}"#);
        assert!(check(folder.path(), "d", 1).is_ok());
        for (digest, seed) in [("e", 1), ("d", 2)] {
            let error = check(folder.path(), digest, seed).expect_err("another campaign");
            assert!(error.to_string().contains("--force"), "{error}");
        }
        record(folder.path(), "no JSON");
        assert!(check(folder.path(), "d", 1).is_err());
    }

    #[test]
    fn other_files_are_neither_replaced_nor_removed() {
        let folder = folder();
        let unrelated = folder.path().join("thesis.tex");
        std::fs::write(&unrelated, "text").expect("written");
        let error = check(folder.path(), "d", 1).expect_err("occupied");
        assert!(error.to_string().contains("not results"), "{error}");
        record(folder.path(), "{}");
        let lock = FolderLock::take_free(folder.path()).expect("free");
        clear(&lock).expect("cleared");
        assert!(unrelated.exists());
        assert!(!folder.path().join(RECORD).exists());
    }
}
