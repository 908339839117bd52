//! Writing of output files.
//!
//! Outputs are regular files. A device, a FIFO or a socket is never replaced or removed: it is
//! refused, or written to if the output is a table that can go through a pipe. Symbolic links are
//! followed: the target is written, and the link stays.

mod float_text;
mod formulas;
mod printable;

pub use float_text::float_text;
pub use formulas::{FormulaEscaper, escape_formula, unescape_formula};
pub use printable::{printable, printable_lines};

use rustix::fs::OFlags;
use std::fs::{self, File, FileType, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Prefix of the names of unfinished files. A killed process may leave such a file, which can be
/// removed.
pub const UNFINISHED_PREFIX: &str = ".flipwave-";

/// Permissions of new files, to which the user's umask applies.
const NEW_FILE: u32 = 0o666;

/// Checks that `path` can be an output: that it is a regular file or does not exist.
///
/// # Errors
/// Names the kind of any other file.
pub fn check(path: &Path) -> io::Result<()> {
    if is_descriptor(path) {
        return Err(io::Error::other(
            "it is a file descriptor of a process; expected a regular file",
        ));
    }
    match fs::metadata(path) {
        Ok(found) => regular(&found),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Creates an empty file, or empties an existing one.
///
/// # Errors
/// If `path` is not a regular file, which is left unchanged; if the file cannot be opened.
pub fn create(path: &Path) -> io::Result<File> {
    check(path)?;
    // Non-blocking: if the file was replaced by a FIFO, opening it does not wait for a reader.
    let no_wait = OFlags::NONBLOCK.bits().cast_signed();
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).custom_flags(no_wait).open(path)?;
    regular(&file.metadata()?)?;
    file.set_len(0)?;
    Ok(file)
}

/// Opens a file for appending, and creates it if it does not exist.
///
/// # Errors
/// As [`create`].
pub fn append(path: &Path) -> io::Result<File> {
    let no_wait = OFlags::NONBLOCK.bits().cast_signed();
    check(path)?;
    let file = OpenOptions::new().append(true).create(true).custom_flags(no_wait).open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

/// Opens the output of a table that is written row by row: a file as [`create`], or a pipe or a
/// terminal. A regular file that a descriptor such as `/dev/stdout` names is appended to.
///
/// # Errors
/// As [`create`], for folders, sockets and block devices.
pub fn stream(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path).map(|found| found.file_type());
    match kind {
        Ok(kind) if kind.is_fifo() || kind.is_char_device() => {
            OpenOptions::new().write(true).open(path)
        }
        Ok(kind) if kind.is_file() && is_descriptor(path) => {
            OpenOptions::new().append(true).open(path)
        }
        _ => create(path),
    }
}

/// Returns `true` if a path names a file descriptor of a process, such as `/dev/stdout` or
/// `/proc/self/fd/3`. A file with such a name cannot be replaced.
fn is_descriptor(path: &Path) -> bool {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    ["/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"]
        .into_iter()
        .any(|folder| path.starts_with(folder))
}

/// Writes a file, and replaces an existing one atomically: a reader finds the old or the new
/// content, even if this process is killed.
///
/// # Errors
/// As [`create`]; an existing file is unchanged then.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    check(path)?;
    let target = target(path)?;
    let mode = fs::metadata(&target).map_or(NEW_FILE, |old| old.permissions().mode());
    let mut unfinished = tempfile::Builder::new()
        .prefix(UNFINISHED_PREFIX)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder(&target))?;
    unfinished.write_all(content)?;
    unfinished.persist(&target)?;
    Ok(())
}

/// Writes a file in a folder that processes on several machines share, and replaces an existing one
/// atomically: it is written under another name, synchronized to disk, and renamed. A killed
/// process leaves a file whose name begins with [`UNFINISHED_PREFIX`]. Returns the number of bytes.
///
/// # Errors
/// If `content` cannot be read; as [`finish`].
pub fn publish(path: &Path, mut content: impl Read) -> io::Result<u64> {
    let mut unfinished = unfinished(&folder(path))?;
    let bytes = io::copy(&mut content, &mut unfinished)?;
    finish(unfinished, path)?;
    Ok(bytes)
}

/// Creates an empty temporary file in a folder, for [`finish`]. It is removed if it is dropped
/// before.
///
/// # Errors
/// If the file cannot be created.
pub fn unfinished(folder: &Path) -> io::Result<NamedTempFile> {
    let mode = Permissions::from_mode(NEW_FILE);
    tempfile::Builder::new().prefix(UNFINISHED_PREFIX).permissions(mode).tempfile_in(folder)
}

/// Synchronizes a file of [`unfinished`] to disk and gives it its name. Replaces an existing file,
/// or the target of a symbolic link.
///
/// # Errors
/// If `path` is not a regular file, which is left unchanged; if the file cannot be written.
pub fn finish(mut unfinished: NamedTempFile, path: &Path) -> io::Result<()> {
    check(path)?;
    let path = &target(path)?;
    let file_system = |path: &Path| fs::metadata(folder(path)).map(|folder| folder.dev());
    if file_system(unfinished.path())? != file_system(path)? {
        // The target of the link is on another file system.
        let mut content = unfinished.reopen()?;
        unfinished = self::unfinished(&folder(path))?;
        io::copy(&mut content, &mut unfinished)?;
    }
    unfinished.as_file().sync_all()?;
    let bytes = unfinished.as_file().metadata()?.len();
    let unfinished = unfinished.into_temp_path();
    match fs::rename(&unfinished, path) {
        Ok(()) => {}
        // A file server has renamed the file, its answer was lost, and the request was repeated.
        Err(error)
            if error.kind() == ErrorKind::NotFound
                && !unfinished.exists()
                && fs::metadata(path).is_ok_and(|found| found.len() == bytes) => {}
        Err(error) => return Err(error),
    }
    // The file was renamed; there is nothing to remove.
    let _ = unfinished.keep();
    // Some file systems cannot synchronize folders, and have the name on disk already.
    let _ = File::open(folder(path)).and_then(|folder| folder.sync_all());
    Ok(())
}

/// The path with symbolic links resolved, whether the file exists or not.
fn target(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => match fs::read_link(path) {
            Ok(link) => target(&folder(path).join(link)),
            Err(_) => Ok(path.to_owned()),
        },
        found => found,
    }
}

/// Removes an output, if it exists. Removes the target of a symbolic link, not the link.
///
/// # Errors
/// If `path` is not a regular file, which is left unchanged.
pub fn remove(path: &Path) -> io::Result<()> {
    check(path)?;
    match fs::remove_file(target(path)?) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// The folder of a file.
fn folder(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    parent.unwrap_or(Path::new(".")).to_owned()
}

fn regular(found: &Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let kind = kind(found.file_type());
    Err(io::Error::other(format!("it is {kind}; expected a regular file, or none")))
}

fn kind(found: FileType) -> &'static str {
    if found.is_dir() {
        "a folder"
    } else if found.is_fifo() {
        "a FIFO"
    } else if found.is_socket() {
        "a socket"
    } else if found.is_char_device() {
        "a character device"
    } else {
        "a block device"
    }
}

#[cfg(test)]
mod tests;
