//! Memory that has a file (`dma-buf`), by which others get it. In the process that has made it, it is
//! known by the file's number; elsewhere by the file's name.

use super::buffers::Buffer;
use super::error::Errno;
use super::gpu::GpuNode;
use super::share::Share;
use crate::machine::Machine;
use crate::store::Part;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A file's number: its file system's, and its own there.
type FileNumber = (u64, u64);

/// The files that were given.
#[derive(Default)]
pub struct SharedFiles(Mutex<BTreeMap<FileNumber, SharedFile>>);

/// What a file is of. The file does not keep it.
struct SharedFile {
    buffer: Buffer,
    part: Weak<Part>,
}

fn number(file: RawFd) -> Result<FileNumber, Errno> {
    // SAFETY: writes one structure of numbers. The call itself, as what stands before the function
    // may ask us.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        if libc::syscall(libc::SYS_fstat, file, &raw mut status) != 0 {
            return Err(Errno::last());
        }
        Ok((status.st_dev, status.st_ino))
    }
}

/// What the name of a file begins with, before the words by which other processes know its memory.
const NAME: &str = "flipwave-dmabuf";

/// The memory that a file is of by its name, which goes where the file goes.
pub fn share(file: RawFd) -> Result<Share, Errno> {
    let name = std::fs::read_link(format!("/proc/self/fd/{file}")).map_err(Errno::of)?;
    let words = || {
        let words = name.to_str()?.strip_prefix("/memfd:")?.strip_prefix(NAME)?;
        let mut words = words.split(' ').next()?.split('-').skip(1);
        let mut word = || u32::from_str_radix(words.next()?, 16).ok();
        Some([word()?, word()?, word()?, word()?])
    };
    words().map(Share::of_words).ok_or(Errno::INVALID)
}

impl SharedFiles {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<FileNumber, SharedFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory that a file is of which this process has made, or has got from another before.
    pub fn known(&self, file: RawFd) -> Result<Option<Buffer>, Errno> {
        let files = self.lock();
        let Some(shared) = files.get(&number(file)?) else { return Ok(None) };
        let part = shared.part.upgrade();
        Ok(part.map(|part| Buffer { part: Some(part), ..shared.buffer.clone() }))
    }

    /// The memory that a file is of; that of another process becomes a part of this GPU's.
    ///
    /// # Errors
    /// [`Errno::INVALID`] if it is of none, or of none any more.
    pub fn get(&self, machine: &Machine, gpu: GpuNode, file: RawFd) -> Result<Buffer, Errno> {
        if let Some(buffer) = self.known(file)? {
            return Ok(buffer);
        }
        let share = share(file)?;
        // What is this process's own would be known.
        if share.process == std::process::id() {
            return Err(Errno::INVALID);
        }
        let buffer = share.adopt(machine, gpu)?;
        self.remember(file, &buffer)?;
        Ok(buffer)
    }

    fn remember(&self, file: RawFd, buffer: &Buffer) -> Result<(), Errno> {
        let part = buffer.part.as_ref().ok_or(Errno::INVALID)?;
        let buffer = Buffer { part: None, ..buffer.clone() };
        let shared = SharedFile { buffer, part: Arc::downgrade(part) };
        let mut files = self.lock();
        files.retain(|_, other| other.part.strong_count() > 0);
        files.insert(number(file)?, shared);
        Ok(())
    }

    /// Makes a file of memory. Its length is the memory's, by which programs know how much it is.
    pub fn make(&self, machine: &Machine, buffer: &Buffer) -> Result<OwnedFd, Errno> {
        let name = match Share::of(machine, buffer) {
            Ok(share) => {
                let [first, second, third, fourth] = share.words();
                format!("{NAME}-{first:x}-{second:x}-{third:x}-{fourth:x}")
            }
            // Others do not get it.
            Err(_) => NAME.to_owned(),
        };
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: makes a file, which is nobody else's, or fails.
        let file = unsafe {
            let file = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
            if file < 0 {
                return Err(Errno::last());
            }
            OwnedFd::from_raw_fd(file)
        };
        // SAFETY: a file of ours, of which nothing is mapped.
        if unsafe { libc::ftruncate(file.as_raw_fd(), buffer.bytes as i64) } != 0 {
            return Err(Errno::last());
        }
        self.remember(file.as_raw_fd(), buffer)?;
        Ok(file)
    }
}
