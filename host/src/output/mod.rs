//! Output files: what may be written to, and how.
//!
//! Outputs go to regular files. A device, a FIFO or a socket in the place of one is never replaced and
//! never removed: it is refused, or, where a table can as well go through a pipe, written to as it is.
//! A symbolic link is followed: what it leads to is written, and the link stays.

mod cells;
mod float_text;
mod shown;

pub use cells::{Cells, marked, unmarked};
pub use float_text::float_text;
pub use shown::{shown, shown_lines};

use rustix::fs::OFlags;
use std::fs::{self, File, FileType, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// How the names of files begin that are not finished. One that was left by a process that was
/// killed can be removed.
pub const UNFINISHED: &str = ".flipwave-";

/// Permissions of new files, before the user's mask takes some away.
const NEW_FILE: u32 = 0o666;

/// Checks that an output can go to `path`: that a regular file is there, or nothing.
///
/// # Errors
/// Says what else is there.
pub fn check(path: &Path) -> io::Result<()> {
    if is_descriptor(path) {
        return Err(io::Error::other("it names what a process has open; expected a regular file"));
    }
    match fs::metadata(path) {
        Ok(found) => regular(&found),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes an empty file, or empties the one that is there.
///
/// # Errors
/// If something else than a regular file is there, which stays as it is; if it cannot be opened.
pub fn create(path: &Path) -> io::Result<File> {
    check(path)?;
    // Should a FIFO have come there just now, it is not waited for whoever reads it.
    let no_wait = OFlags::NONBLOCK.bits().cast_signed();
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).custom_flags(no_wait).open(path)?;
    regular(&file.metadata()?)?;
    file.set_len(0)?;
    Ok(file)
}

/// Opens a file to add to it, and makes it if there is none.
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

/// Opens what a table goes to, row after row: as [`create`], or a pipe or a terminal as it is. What
/// stands in a file that a process has open, `/dev/stdout`, is added to.
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

/// Whether a path names what a process has open, `/dev/stdout` or `/proc/self/fd/3`: a file of that
/// name cannot be replaced.
fn is_descriptor(path: &Path) -> bool {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    ["/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"]
        .into_iter()
        .any(|own| path.starts_with(own))
}

/// Writes a whole file, in the place of the one that is there: whoever reads finds the one or the
/// other, even where this process is killed meanwhile.
///
/// # Errors
/// As [`create`]; the file that was there is there still.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    check(path)?;
    let target = target(path)?;
    let mode = fs::metadata(&target).map_or(NEW_FILE, |own| own.permissions().mode());
    let mut unfinished = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder(&target))?;
    unfinished.write_all(content)?;
    unfinished.persist(&target)?;
    Ok(())
}

/// Puts a whole file among others that many processes on many machines share, in the place of one of
/// its name that is there: it is copied under another name, on disk before it gets its own, and nobody
/// sees a part of it. A process that is killed meanwhile leaves a file whose name begins with
/// [`UNFINISHED`]. How many bytes were written.
///
/// # Errors
/// If it cannot be read; as [`finish`].
pub fn publish(path: &Path, mut content: impl Read) -> io::Result<u64> {
    let mut unfinished = unfinished(&folder(path))?;
    let bytes = io::copy(&mut content, &mut unfinished)?;
    finish(unfinished, path)?;
    Ok(bytes)
}

/// An empty file in a folder, for [`finish`]. It is removed where it is not finished.
///
/// # Errors
/// If it cannot be made.
pub fn unfinished(folder: &Path) -> io::Result<NamedTempFile> {
    let mode = Permissions::from_mode(NEW_FILE);
    tempfile::Builder::new().prefix(UNFINISHED).permissions(mode).tempfile_in(folder)
}

/// Gives a file of [`unfinished`] its name, when it is on disk, in the place of the one that is there, or
/// that a symbolic link of this name leads to.
///
/// # Errors
/// If something else than a regular file is there, which stays as it is; if it cannot be written.
pub fn finish(mut unfinished: NamedTempFile, path: &Path) -> io::Result<()> {
    check(path)?;
    let path = &target(path)?;
    let of = |path: &Path| fs::metadata(folder(path)).map(|folder| folder.dev());
    if of(unfinished.path())? != of(path)? {
        // The link leads to another file system.
        let mut content = unfinished.reopen()?;
        unfinished = self::unfinished(&folder(path))?;
        io::copy(&mut content, &mut unfinished)?;
    }
    unfinished.as_file().sync_all()?;
    let bytes = unfinished.as_file().metadata()?.len();
    let unfinished = unfinished.into_temp_path();
    match fs::rename(&unfinished, path) {
        Ok(()) => {}
        // A file server has done it, its answer got lost, and it was asked again.
        Err(error)
            if error.kind() == ErrorKind::NotFound
                && !unfinished.exists()
                && fs::metadata(path).is_ok_and(|own| own.len() == bytes) => {}
        Err(error) => return Err(error),
    }
    // The name is gone; there is nothing to remove.
    let _ = unfinished.keep();
    // Some file systems do not take it of folders, and have the name on disk by then.
    let _ = File::open(folder(path)).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Where a path leads to, be there a file or none.
fn target(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => match fs::read_link(path) {
            Ok(link) => target(&folder(path).join(link)),
            Err(_) => Ok(path.to_owned()),
        },
        found => found,
    }
}

/// Removes an output, if there is one. A symbolic link stays, what it leads to is removed.
///
/// # Errors
/// If something else than a regular file is there, which stays as it is.
pub fn remove(path: &Path) -> io::Result<()> {
    check(path)?;
    match fs::remove_file(target(path)?) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// The folder that a file is in.
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
