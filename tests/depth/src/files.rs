//! Cases that are files of the user.

use std::path::PathBuf;

/// The files with an extension in the folder that an environment variable names, by name. Without the variable, there
/// are none, and a message says so.
///
/// # Panics
/// If the folder cannot be read.
pub fn files_in(variable: &str, extension: &str) -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os(variable).map(PathBuf::from) else {
        eprintln!("skipped: {variable} names no folder with files *.{extension}");
        return Vec::new();
    };
    let files = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{variable}={}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = files
        .map(|file| file.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path())
        .filter(|path| path.extension().is_some_and(|end| end == extension))
        .collect();
    paths.sort();
    paths
}
