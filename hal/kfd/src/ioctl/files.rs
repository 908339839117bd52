//! Memory that has a file (`dma-buf`), by which others of the process get it. It is known by the file's
//! number: what other processes bring is not.

use super::abi::*;
use super::buffers::Buffer;
use super::error::Errno;
use super::process::Process;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A file's number: its file system's, and its own there.
type FileNumber = (u64, u64);

/// The files that were given.
#[derive(Default)]
pub struct SharedFiles(Mutex<BTreeMap<FileNumber, SharedFile>>);

/// What a file is of. The file does not keep it.
struct SharedFile {
    buffer: Buffer,
    part: Weak<crate::store::Part>,
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

impl SharedFiles {
    /// The memory that a file of the process is of.
    ///
    /// # Errors
    /// [`Errno::INVALID`] if it is of none, or of none any more.
    pub fn get(&self, file: RawFd) -> Result<Buffer, Errno> {
        let number = number(file)?;
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = files.get(&number).ok_or(Errno::INVALID)?;
        let part = shared.part.upgrade().ok_or(Errno::INVALID)?;
        Ok(Buffer { part: Some(part), ..shared.buffer.clone() })
    }

    /// Makes a file of memory. Its length is the memory's, by which programs know how much it is.
    fn make(&self, buffer: &Buffer) -> Result<OwnedFd, Errno> {
        let part = buffer.part.as_ref().ok_or(Errno::INVALID)?;
        // SAFETY: makes a file, which is nobody else's, or fails.
        let file = unsafe {
            let file = libc::memfd_create(c"flipwave-dmabuf".as_ptr(), libc::MFD_CLOEXEC);
            if file < 0 {
                return Err(Errno::last());
            }
            OwnedFd::from_raw_fd(file)
        };
        // SAFETY: a file of ours, of which nothing is mapped.
        if unsafe { libc::ftruncate(file.as_raw_fd(), buffer.bytes as i64) } != 0 {
            return Err(Errno::last());
        }
        let shared = SharedFile {
            buffer: Buffer { part: None, ..buffer.clone() },
            part: Arc::downgrade(part),
        };
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|_, other| other.part.strong_count() > 0);
        files.insert(number(file.as_raw_fd())?, shared);
        Ok(file)
    }
}

pub fn export(process: &Process, own: &mut ExportDmabuf) -> Result<(), Errno> {
    let file = process.files.make(&process.buffers.get(own.handle)?)?;
    own.dmabuf_fd = file.into_raw_fd() as u32;
    Ok(())
}

pub fn describe(process: &Process, own: &mut GetDmabufInfo) -> Result<(), Errno> {
    let buffer = process.files.get(own.dmabuf_fd as RawFd)?;
    (own.size, own.gpu_id, own.flags) = (buffer.bytes, buffer.gpu.id(), buffer.flags);
    own.metadata_size = 0;
    Ok(())
}

/// Gives memory another handle, at another address of the GPUs.
pub fn import(process: &Process, own: &mut ImportDmabuf) -> Result<(), Errno> {
    process.gpu(own.gpu_id)?;
    let buffer = process.files.get(own.dmabuf_fd as RawFd)?;
    let buffer = Buffer { address: own.va_addr, ..buffer };
    buffer.place(process)?;
    own.handle = process.buffers.add(buffer);
    Ok(())
}
