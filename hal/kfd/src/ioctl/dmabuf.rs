//! Files that represent memory (`dma-buf`). In the process that made or imported a file, its buffer
//! is found by the file's inode; in other processes by the file's name, which contains an
//! [`IpcHandle`].

use super::buffers::Buffer;
use super::error::Errno;
use super::gpu::GpuNode;
use super::ipc::IpcHandle;
use crate::machine::Machine;
use crate::store::Allocation;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Identity of a file: file system and inode number.
type FileId = (u64, u64);

/// The dma-bufs that this process has made or imported.
#[derive(Default)]
pub struct Dmabufs(Mutex<BTreeMap<FileId, Dmabuf>>);

/// The buffer of a dma-buf. The file does not keep the memory allocated.
struct Dmabuf {
    /// Without its allocation.
    buffer: Buffer,
    allocation: Weak<Allocation>,
}

fn file_id(file: RawFd) -> Result<FileId, Errno> {
    // SAFETY: writes one structure of numbers. A system call, as the C library's function is
    // intercepted by the preload shim.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        if libc::syscall(libc::SYS_fstat, file, &raw mut status) != 0 {
            return Err(Errno::last());
        }
        Ok((status.st_dev, status.st_ino))
    }
}

/// Beginning of the names of dma-bufs. The words of an [`IpcHandle`] follow.
const NAME: &str = "flipwave-dmabuf";

/// The handle in the name of a dma-buf, which names the memory in every process.
pub fn ipc_handle(file: RawFd) -> Result<IpcHandle, Errno> {
    let name = std::fs::read_link(format!("/proc/self/fd/{file}")).map_err(Errno::from_io)?;
    let words = || {
        let words = name.to_str()?.strip_prefix("/memfd:")?.strip_prefix(NAME)?;
        let mut words = words.split(' ').next()?.split('-').skip(1);
        let mut word = || u32::from_str_radix(words.next()?, 16).ok();
        Some([word()?, word()?, word()?, word()?])
    };
    words().map(IpcHandle::from_words).ok_or(Errno::INVALID)
}

impl Dmabufs {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<FileId, Dmabuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The buffer of a dma-buf that this process has made or imported; `None` if its memory was
    /// freed.
    pub fn known_buffer(&self, file: RawFd) -> Result<Option<Buffer>, Errno> {
        let dmabufs = self.lock();
        let Some(dmabuf) = dmabufs.get(&file_id(file)?) else { return Ok(None) };
        let allocation = dmabuf.allocation.upgrade();
        let buffer = |allocation| Buffer { allocation: Some(allocation), ..dmabuf.buffer.clone() };
        Ok(allocation.map(buffer))
    }

    /// The buffer of a dma-buf. Imports memory of another process to the memory of a GPU.
    ///
    /// # Errors
    /// [`Errno::INVALID`] if the file is no dma-buf, or its memory was freed.
    pub fn import(&self, machine: &Machine, gpu: GpuNode, file: RawFd) -> Result<Buffer, Errno> {
        if let Some(buffer) = self.known_buffer(file)? {
            return Ok(buffer);
        }
        let handle = ipc_handle(file)?;
        // Memory of this process would be known: it was freed.
        if handle.process == std::process::id() {
            return Err(Errno::INVALID);
        }
        let buffer = handle.import(machine, gpu)?;
        self.remember(file, &buffer)?;
        Ok(buffer)
    }

    fn remember(&self, file: RawFd, buffer: &Buffer) -> Result<(), Errno> {
        let allocation = buffer.allocation.as_ref().ok_or(Errno::INVALID)?;
        let buffer = Buffer { allocation: None, ..buffer.clone() };
        let dmabuf = Dmabuf { buffer, allocation: Arc::downgrade(allocation) };
        let mut dmabufs = self.lock();
        dmabufs.retain(|_, dmabuf| dmabuf.allocation.strong_count() > 0);
        dmabufs.insert(file_id(file)?, dmabuf);
        Ok(())
    }

    /// Makes a dma-buf of a buffer. The file has the buffer's length: programs ask for it.
    pub fn export(&self, machine: &Machine, buffer: &Buffer) -> Result<OwnedFd, Errno> {
        let name = match IpcHandle::new(machine, buffer) {
            Ok(handle) => {
                let [first, second, third, fourth] = handle.to_words();
                format!("{NAME}-{first:x}-{second:x}-{third:x}-{fourth:x}")
            }
            // Other processes cannot import it.
            Err(_) => NAME.to_owned(),
        };
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: creates a file that is not used elsewhere, or fails.
        let file = unsafe {
            let file = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
            if file < 0 {
                return Err(Errno::last());
            }
            OwnedFd::from_raw_fd(file)
        };
        // SAFETY: the file created above, of which nothing is mapped.
        if unsafe { libc::ftruncate(file.as_raw_fd(), buffer.bytes as i64) } != 0 {
            return Err(Errno::last());
        }
        self.remember(file.as_raw_fd(), buffer)?;
        Ok(file)
    }
}
