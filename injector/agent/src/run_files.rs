//! The files that a run of an application shares with the program that has started it.

use flipwave_process_tree::{TABLE_VARIABLE, Table};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Files of one run, in a folder of their own.
#[derive(Debug)]
pub struct RunFiles {
    folder: tempfile::TempDir,
}

impl RunFiles {
    /// New files, for an application that gets the environment of this process.
    ///
    /// # Errors
    /// If they cannot be made in the folder for temporary files.
    pub fn new() -> io::Result<RunFiles> {
        let files = RunFiles { folder: tempfile::tempdir()? };
        Table::create(&files.processes(), |name| std::env::var_os(name).is_some())?;
        Ok(files)
    }

    /// The report, see [`crate::Event`].
    pub fn report(&self) -> PathBuf {
        self.folder.path().join("report")
    }

    /// The table of the application's processes.
    pub fn processes(&self) -> PathBuf {
        self.folder.path().join("processes")
    }

    /// A table that a tool writes, where the user names no file.
    pub fn table(&self) -> PathBuf {
        self.folder.path().join("table")
    }

    /// The variable by which processes find their table.
    pub(crate) fn variable(processes: &Path) -> (&'static str, OsString) {
        (TABLE_VARIABLE, processes.into())
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}
