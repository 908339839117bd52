//! The temporary files that an application shares with the program that started it.

use flipwave_process_tree::{TABLE_VARIABLE, Table};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// The temporary files of one run, in a separate folder that is removed when this is dropped.
#[derive(Debug)]
pub struct RunFiles {
    folder: tempfile::TempDir,
}

impl RunFiles {
    /// Creates the files for an application that inherits the environment of this process.
    ///
    /// # Errors
    /// If they cannot be created in the folder for temporary files.
    pub fn new() -> io::Result<RunFiles> {
        let files = RunFiles { folder: tempfile::tempdir()? };
        Table::create(&files.processes(), |name| std::env::var_os(name).is_some())?;
        Ok(files)
    }

    /// The report file, see [`crate::Event`].
    pub fn report(&self) -> PathBuf {
        self.folder.path().join("report")
    }

    /// The table of the application's processes.
    pub fn processes(&self) -> PathBuf {
        self.folder.path().join("processes")
    }

    /// The file for a tool's table if the user gives none.
    pub fn table(&self) -> PathBuf {
        self.folder.path().join("table")
    }

    /// The file with a tool, for [`crate::ToolSession`].
    pub fn tool(&self) -> PathBuf {
        self.folder.path().join("tool.json")
    }

    /// The environment variable with the table of processes.
    pub(crate) fn variable(processes: &Path) -> (&'static str, OsString) {
        (TABLE_VARIABLE, processes.into())
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}
