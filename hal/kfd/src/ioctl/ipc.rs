//! Handles of memory for other processes (IPC). A handle names the process and the location in the
//! file of the process's store. The importer opens that file by its descriptor in the exporting
//! process (`/proc/PID/fd`), so that no named file is left behind.

use super::buffers::Buffer;
use super::error::Errno;
use super::gpu::GpuNode;
use crate::machine::Machine;
use crate::memory::PAGE;
use std::fs::{File, OpenOptions, read_link};
use std::path::PathBuf;
use std::sync::Arc;

/// Handle of memory of a process, which must still run when another process imports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpcHandle {
    pub process: u32,
    /// File descriptor of the store in the process.
    file: u16,
    /// Number of the first page in the file.
    first: u32,
    /// Number of pages.
    pages: u32,
    node: u8,
    /// Flags of the allocation; only bits of [`LOW_FLAGS`] and [`HIGH_FLAGS`] are set.
    pub flags: u32,
}

// Masks of the defined allocation flags, which a handle stores.
const LOW_FLAGS: u32 = 0x3f;
const HIGH_FLAGS: u32 = 0xfc00_0000;

/// Beginning of the names of the GPUs' stores.
const NAME: &str = "/memfd:flipwave-gpu-";

impl IpcHandle {
    /// Creates the handle of a buffer of this process.
    ///
    /// # Errors
    /// [`Errno::INVALID`] for memory that is in no file.
    pub fn new(machine: &Machine, buffer: &Buffer) -> Result<IpcHandle, Errno> {
        let allocation = buffer.allocation.as_ref().ok_or(Errno::INVALID)?;
        let location = buffer.gpu.store(machine)?.file_and_offset(allocation);
        let (file, offset) = location.ok_or(Errno::INVALID)?;
        let number = |value: u64| u32::try_from(value).map_err(|_| Errno::INVALID);
        Ok(IpcHandle {
            process: std::process::id(),
            file: u16::try_from(file).map_err(|_| Errno::INVALID)?,
            first: number(offset / PAGE)?,
            pages: number(buffer.bytes / PAGE)?,
            node: u8::try_from(buffer.gpu.0).map_err(|_| Errno::INVALID)?,
            flags: buffer.flags & (LOW_FLAGS | HIGH_FLAGS),
        })
    }

    /// Encodes the handle for programs. Four bits are enough for the node: a machine has at most 16
    /// GPUs.
    pub fn to_words(self) -> [u32; 4] {
        let flags = self.flags & LOW_FLAGS | (self.flags & HIGH_FLAGS) >> 20;
        let node = u32::from(self.node - 1) & 0xf;
        [self.process, self.first, self.pages, u32::from(self.file) << 16 | node << 12 | flags]
    }

    /// Decodes the words of [`IpcHandle::to_words`].
    pub fn from_words([process, first, pages, last]: [u32; 4]) -> IpcHandle {
        let flags = last & LOW_FLAGS | last << 20 & HIGH_FLAGS;
        let (file, node) = ((last >> 16) as u16, (last >> 12 & 0xf) as u8 + 1);
        IpcHandle { process, file, first, pages, node, flags }
    }

    /// The GPU with the number of the exporter's GPU; the first GPU if this machine has fewer.
    pub fn gpu(self, machine: &Machine) -> GpuNode {
        let node = u32::from(self.node);
        GpuNode(if machine.is_gpu(node) { node } else { 1 })
    }

    pub fn bytes(self) -> u64 {
        u64::from(self.pages) * PAGE
    }

    /// Opens the exporter's file.
    fn open(self) -> Result<File, Errno> {
        let path = PathBuf::from(format!("/proc/{}/fd/{}", self.process, self.file));
        let name = read_link(&path).map_err(Errno::from_io)?;
        let is_store = name.to_str().is_some_and(|name| name.starts_with(NAME));
        if !is_store {
            return Err(Errno::INVALID);
        }
        OpenOptions::new().read(true).write(true).open(path).map_err(Errno::from_io)
    }

    /// Makes the memory a part of a GPU's memory in this process.
    ///
    /// # Errors
    /// [`Errno::INVALID`] if the exporter's file cannot be opened, or has no such memory.
    pub fn import(self, machine: &Machine, gpu: GpuNode) -> Result<Buffer, Errno> {
        let file = self.open().map_err(|_| Errno::INVALID)?;
        let (offset, bytes) = (u64::from(self.first) * PAGE, self.bytes());
        let allocation = gpu.store(machine)?.import(file, offset, bytes).map_err(Errno::from_io)?;
        let (host, allocation) = (allocation.host, Some(Arc::new(allocation)));
        Ok(Buffer { address: 0, bytes, gpu, flags: self.flags, host, allocation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_inverts_encoding() {
        let largest = IpcHandle {
            process: 4_194_304,
            file: 0xfedc,
            first: 0x0fff_fffe,
            pages: 0x1234_5678,
            node: 16,
            flags: 0xfc00_0003,
        };
        assert_eq!(IpcHandle::from_words(largest.to_words()), largest);
        let smallest = IpcHandle { process: 1, file: 3, first: 1, pages: 1, node: 1, flags: 1 };
        assert_eq!(IpcHandle::from_words(smallest.to_words()), smallest);
    }
}
