//! Guarded reading of input files.
//!
//! Every file that another program may have written is opened here. Only regular files are read: a
//! FIFO may wait forever, and a device may never end. Every read has a limit, so that no file
//! exhausts memory.

mod lines;

pub use lines::BoundedLines;

use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Limit in bytes for text that people write: campaign files, hooks, kernels, settings.
pub const TEXT: u64 = 16 << 20;

/// Limit in bytes for records that this program writes: `run.json`, plans, lists.
pub const RECORD: u64 = 256 << 20;

/// Limit in bytes for binary files that are read whole: code objects, golden runs.
pub const BINARY: u64 = 4 << 30;

/// Opens a regular file for reading.
///
/// # Errors
/// Errors of opening it; [`ErrorKind::InvalidInput`] for anything but a regular file.
pub fn open(path: &Path) -> Result<File> {
    open_as(path, OFlags::RDONLY)
}

/// Opens an existing regular file for reading and writing, without changing its content.
///
/// # Errors
/// As [`open`].
pub fn open_writable(path: &Path) -> Result<File> {
    open_as(path, OFlags::RDWR)
}

fn open_as(path: &Path, access: OFlags) -> Result<File> {
    // Opening a device can have effects; opening a FIFO waits for its writer.
    expect_regular(FileType::from_raw_mode(rustix::fs::stat(path)?.st_mode))?;
    let flags = access | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    // The file may have been replaced since.
    expect_regular(FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode))?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

fn expect_regular(kind: FileType) -> Result<()> {
    let name = match kind {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a folder",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice => "a character device",
        FileType::BlockDevice => "a block device",
        _ => "something else",
    };
    Err(Error::new(ErrorKind::InvalidInput, format!("it is {name}; expected a regular file")))
}

/// Size of a regular file in bytes.
///
/// # Errors
/// As [`open`].
pub fn size(path: &Path) -> Result<u64> {
    Ok(open(path)?.metadata()?.len())
}

/// Content of a regular file of at most `most` bytes.
///
/// # Errors
/// As [`open`]; [`ErrorKind::FileTooLarge`] for a longer file; errors of reading it.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    read_rest(open(path)?, most)
}

/// Bytes from the position of `file` to its end, at most `most` of them.
///
/// # Errors
/// [`ErrorKind::FileTooLarge`] if there are more; [`ErrorKind::OutOfMemory`]; errors of reading it.
pub fn read_rest(file: File, most: u64) -> Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length > most {
        return Err(too_large(most));
    }
    let mut bytes = Vec::new();
    // Files of /proc have no length; a file may grow while it is read.
    bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))?;
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large(most)) } else { Ok(bytes) }
}

fn too_large(most: u64) -> Error {
    let most = if most.is_multiple_of(1 << 20) && most > 0 {
        format!("{} MiB", most >> 20)
    } else {
        format!("{most} bytes")
    };
    Error::new(ErrorKind::FileTooLarge, format!("it is larger than the limit of {most}"))
}

/// Text of a regular file of at most `most` bytes.
///
/// # Errors
/// As [`read`]; [`ErrorKind::InvalidData`] for text that is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> Result<String> {
    text(read(path, most)?)
}

/// Text of a regular file, or of a pipe that this process has inherited, by the names that shells
/// use: `/dev/stdin` and `/dev/fd/63`. A pipe is read until its writers have closed it.
///
/// # Errors
/// As [`read_text`].
pub fn read_text_or_pipe(path: &Path, most: u64) -> Result<String> {
    let kind = FileType::from_raw_mode(rustix::fs::stat(path)?.st_mode);
    let is_descriptor =
        ["/dev/stdin", "/dev/fd", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder));
    if kind != FileType::Fifo || !is_descriptor {
        return read_text(path, most);
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    // Non-blocking: if the writers are already gone, a plain open would wait for one.
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    text(read_rest(file, most)?)
}

fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Opens a regular file of lines, such as a CSV table, with a limit on the length of lines.
///
/// # Errors
/// As [`open`].
pub fn open_lines(path: &Path) -> Result<BoundedLines<File>> {
    Ok(BoundedLines::new(open(path)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mknodat};
    use std::os::unix::net::UnixListener;

    #[test]
    fn special_files_are_refused_without_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        mknodat(CWD, path("fifo"), FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
        let _listener = UnixListener::bind(path("socket")).expect("a socket");
        std::os::unix::fs::symlink(path("fifo"), path("link")).expect("a link");
        for (path, kind) in [
            (path("fifo"), "a FIFO"),
            (path("link"), "a FIFO"),
            (path("socket"), "a socket"),
            (folder.path().to_owned(), "a folder"),
            ("/dev/zero".into(), "a character device"),
        ] {
            for error in [open(&path).err(), open_writable(&path).err(), read(&path, 8).err()] {
                let error = error.expect("not a regular file").to_string();
                assert_eq!(error, format!("it is {kind}; expected a regular file"));
            }
        }
        std::fs::write(path("file"), "text").expect("written");
        assert_eq!(read_text(&path("file"), 4).expect("read"), "text");
        let file = open(&path("file")).expect("opened");
        assert!(!fcntl_getfl(&file).expect("flags").contains(OFlags::NONBLOCK));
    }

    #[test]
    fn files_larger_than_the_limit_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sparse");
        File::create(&path).and_then(|file| file.set_len(1 << 42)).expect("a sparse file");
        let error = read(&path, RECORD).expect_err("4 TiB");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(error.to_string().contains("256 MiB"), "{error}");
        std::fs::write(&path, b"12345").expect("written");
        assert_eq!(read(&path, 5).expect("read"), b"12345");
        assert_eq!(read(&path, 4).expect_err("too long").kind(), ErrorKind::FileTooLarge);
        std::fs::write(&path, b"\xff").expect("written");
        assert_eq!(read_text(&path, 9).expect_err("no text").kind(), ErrorKind::InvalidData);
        // Files in `/proc` have content but no length.
        assert!(!read("/proc/self/status".as_ref(), TEXT).expect("read").is_empty());
    }
}
