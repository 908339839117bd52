//! The folder that a campaign's results go to, and whose results may be replaced.

use serde_json::Value;
use std::path::{Path, PathBuf};

/// The files of a results folder.
pub(crate) const RESULTS: &str = "results.csv";
pub(crate) const SUMMARY: &str = "summary.csv";
pub(crate) const RATES: &str = "rates.svg";
pub(crate) const RECORD: &str = "run.json";

/// A folder that results cannot go to.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Something else is there.
    #[error(
        "{} {found}; choose another folder with --out, or replace the files in it with --force",
        path.display()
    )]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// What is there.
        found: String,
    },
    /// It cannot be read or written.
    #[error("cannot write results to {}: {reason}", path.display())]
    Access {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        reason: std::io::Error,
    },
}

/// Checks that results may go to `path`: it is new or empty, or holds the results of a run of
/// the same campaign file and seed, which a new run gives again. Nothing is changed.
///
/// # Errors
/// [`FolderError`].
pub(crate) fn check(path: &Path, digest: &str, seed: u64) -> Result<(), FolderError> {
    let occupied =
        |found: &str| Err(FolderError::Occupied { path: path.to_owned(), found: found.to_owned() });
    let failed = |reason| FolderError::Access { path: path.to_owned(), reason };
    let mut entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if entries.next().is_none() {
        return Ok(());
    }
    let Ok(text) = std::fs::read_to_string(path.join(RECORD)) else {
        return occupied("holds files that are no results of Flipwave");
    };
    let record: Value = serde_json::from_str(&text).unwrap_or_default();
    if record["campaign"]["sha256"] == digest && record["campaign"]["seed"] == seed {
        Ok(())
    } else {
        occupied("holds the results of another campaign or of another version of this one")
    }
}

/// Makes the folder, and removes the files of a former run from it.
///
/// # Errors
/// [`FolderError::Access`].
pub(crate) fn clear(path: &Path) -> Result<(), FolderError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |reason| FolderError::Access { path, reason }
    };
    std::fs::create_dir_all(path).map_err(failed(path))?;
    for name in [RESULTS, SUMMARY, RATES, RECORD] {
        let file = path.join(name);
        flipwave_output::remove(&file).map_err(failed(&file))?;
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

    #[test]
    fn only_results_that_come_again_are_replaced() {
        let folder = folder();
        record(folder.path(), r#"{"campaign": {"sha256": "d", "seed": 1}}"#);
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
        let other = folder.path().join("thesis.tex");
        std::fs::write(&other, "text").expect("written");
        let error = check(folder.path(), "d", 1).expect_err("occupied");
        assert!(error.to_string().contains("no results"), "{error}");
        record(folder.path(), "{}");
        clear(folder.path()).expect("cleared");
        assert!(other.exists());
        assert!(!folder.path().join(RECORD).exists());
    }
}
