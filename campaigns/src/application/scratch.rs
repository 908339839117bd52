//! The folder of a run.

use super::error::ApplicationError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use walkdir::WalkDir;

/// The folder of a run with the files of the program, and separately its captured output. Removed
/// when dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// Creates a folder and copies `input` to it. The paths are relative to `directory` and keep
    /// their names.
    ///
    /// # Errors
    /// [`ApplicationError::Scratch`], [`ApplicationError::Input`].
    pub(super) fn new(directory: &Path, input: &[PathBuf]) -> Result<Scratch, ApplicationError> {
        let no_folder = |reason| ApplicationError::Scratch { reason };
        let folder = tempfile::Builder::new().prefix("flipwave-").tempdir().map_err(no_folder)?;
        let scratch = Scratch { folder };
        fs::create_dir(scratch.files()).map_err(no_folder)?;
        for path in input {
            copy(directory, path, &scratch.files())?;
        }
        Ok(scratch)
    }

    /// Working folder of the program.
    pub(super) fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    /// File with the standard output for checks.
    pub(super) fn stdout(&self) -> PathBuf {
        self.folder.path().join("stdout")
    }

    /// File with the standard error for checks.
    pub(super) fn stderr(&self) -> PathBuf {
        self.folder.path().join("stderr")
    }

    /// Total size of the files in the program's folder in bytes. Files that cannot be accessed do
    /// not count, because files may be removed at the same time.
    pub(super) fn size(&self) -> u64 {
        let entries = WalkDir::new(self.files()).into_iter().flatten();
        let files = entries.filter(|entry| entry.file_type().is_file());
        files.flat_map(|file| file.metadata()).map(|metadata| metadata.len()).sum()
    }

    /// Returns `true` if the disk is full.
    pub(super) fn disk_is_full(&self) -> bool {
        // A file system without a limit reports zero blocks.
        rustix::fs::statvfs(self.folder.path())
            .is_ok_and(|disk| disk.f_blocks > 0 && disk.f_bavail == 0)
    }
}

/// Copies the file or folder `path` in `from` to the same path in `to`. Follows links, because the
/// program could change the user's files through a link.
fn copy(from: &Path, path: &Path, to: &Path) -> Result<(), ApplicationError> {
    let failed =
        |path: &Path, reason: io::Error| ApplicationError::Input { path: path.to_owned(), reason };
    for entry in WalkDir::new(from.join(path)).follow_links(true) {
        let entry = entry.map_err(|error| {
            let source = error.path().map_or_else(|| from.join(path), Path::to_owned);
            failed(&source, error.into())
        })?;
        let source = entry.path();
        // All entries are below `from`.
        let target = to.join(source.strip_prefix(from).unwrap_or(path));
        let kind = entry.file_type();
        let copied = if kind.is_dir() {
            fs::create_dir_all(&target)
        } else if kind.is_file() {
            let parent = target.parent().unwrap_or(to);
            fs::create_dir_all(parent).and_then(|()| fs::copy(source, &target).map(|_| ()))
        } else {
            Err(io::Error::other("neither a file nor a folder"))
        };
        copied.map_err(|reason| failed(source, reason))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn inputs_keep_their_paths_and_links_are_followed() {
        let user = tempfile::tempdir().expect("a folder");
        let file = |path: &str| user.path().join(path);
        fs::create_dir_all(file("inputs/deep")).expect("folders");
        fs::write(file("inputs/deep/data.txt"), "data").expect("a file");
        fs::write(file("run.sh"), "#!/bin/sh").expect("a file");
        fs::set_permissions(file("run.sh"), fs::Permissions::from_mode(0o755)).expect("a mode");
        symlink(file("run.sh"), file("inputs/link")).expect("a link");
        let input = ["inputs".into(), "run.sh".into()];
        let scratch = Scratch::new(user.path(), &input).expect("a scratch folder");
        let copy = |path: &str| scratch.files().join(path);
        assert_eq!(fs::read_to_string(copy("inputs/deep/data.txt")).expect("copied"), "data");
        let mode = fs::metadata(copy("run.sh")).expect("copied").permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        assert!(fs::symlink_metadata(copy("inputs/link")).expect("copied").is_file());
        fs::write(copy("inputs/link"), "changed").expect("written");
        assert_eq!(fs::read_to_string(file("run.sh")).expect("unchanged"), "#!/bin/sh");
        let folder = scratch.files();
        drop(scratch);
        assert!(!folder.exists());
    }

    #[test]
    fn errors_name_the_input_that_cannot_be_copied() {
        let user = tempfile::tempdir().expect("a folder");
        let error = |path: &str| {
            Scratch::new(user.path(), &[path.into()]).expect_err("no copy").to_string()
        };
        assert!(error("missing.txt").contains("missing.txt"));
        symlink(user.path(), user.path().join("loop")).expect("a link");
        assert!(error("loop").contains("loop"));
        let socket = user.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(socket).expect("a socket");
        assert!(error("socket").contains("neither a file nor a folder"));
    }
}
