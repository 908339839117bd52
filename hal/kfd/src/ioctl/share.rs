//! Memory as other processes know it: by the process that has it, and the place in the file that it is
//! made of. That file is opened by its number in the other process (`/proc/PID/fd`), so that nothing
//! has a name that would be left behind.

use super::buffers::Buffer;
use super::error::Errno;
use super::gpu::GpuNode;
use crate::machine::Machine;
use crate::memory::PAGE;
use std::fs::{File, OpenOptions, read_link};
use std::path::PathBuf;
use std::sync::Arc;

/// Memory of a process, which must still run when another opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub process: u32,
    /// The number that the file has there.
    file: u16,
    /// Where in it the memory begins, in pages.
    first: u32,
    /// How many there are.
    pages: u32,
    node: u8,
    /// How it was allocated: the bits that say something.
    pub flags: u32,
}

/// Flags of an allocation are in the lowest bits, and in the highest.
const LOW_FLAGS: u32 = 0x3f;
const HIGH_FLAGS: u32 = 0xfc00_0000;

/// The names of files that memory of GPUs is made of.
const NAME: &str = "/memfd:flipwave-gpu-";

impl Share {
    /// How others get memory of this process.
    ///
    /// # Errors
    /// [`Errno::INVALID`] for memory that is in no file.
    pub fn of(machine: &Machine, buffer: &Buffer) -> Result<Share, Errno> {
        let part = buffer.part.as_ref().ok_or(Errno::INVALID)?;
        let place = buffer.gpu.store(machine)?.place_in_file(part);
        let (file, offset) = place.ok_or(Errno::INVALID)?;
        let number = |value: u64| u32::try_from(value).map_err(|_| Errno::INVALID);
        Ok(Share {
            process: std::process::id(),
            file: u16::try_from(file).map_err(|_| Errno::INVALID)?,
            first: number(offset / PAGE)?,
            pages: number(buffer.bytes / PAGE)?,
            node: u8::try_from(buffer.gpu.0).map_err(|_| Errno::INVALID)?,
            flags: buffer.flags & (LOW_FLAGS | HIGH_FLAGS),
        })
    }

    /// As a handle for programs. GPUs are no more than 16.
    pub fn words(self) -> [u32; 4] {
        let flags = self.flags & LOW_FLAGS | (self.flags & HIGH_FLAGS) >> 20;
        let node = u32::from(self.node - 1) & 0xf;
        [self.process, self.first, self.pages, u32::from(self.file) << 16 | node << 12 | flags]
    }

    pub fn of_words([process, first, pages, last]: [u32; 4]) -> Share {
        let flags = last & LOW_FLAGS | last << 20 & HIGH_FLAGS;
        let (file, node) = ((last >> 16) as u16, (last >> 12 & 0xf) as u8 + 1);
        Share { process, file, first, pages, node, flags }
    }

    /// The GPU whose memory it is, if this process has so many; else its first.
    pub fn gpu(self, machine: &Machine) -> GpuNode {
        let node = u32::from(self.node);
        GpuNode(if machine.is_gpu(node) { node } else { 1 })
    }

    pub fn bytes(self) -> u64 {
        u64::from(self.pages) * PAGE
    }

    /// Opens the file.
    fn open(self) -> Result<File, Errno> {
        let path = PathBuf::from(format!("/proc/{}/fd/{}", self.process, self.file));
        let name = read_link(&path).map_err(Errno::of)?;
        let is_gpus = name.to_str().is_some_and(|name| name.starts_with(NAME));
        if !is_gpus {
            return Err(Errno::INVALID);
        }
        OpenOptions::new().read(true).write(true).open(path).map_err(Errno::of)
    }

    /// Makes the memory part of a GPU's of this process.
    ///
    /// # Errors
    /// [`Errno::INVALID`] if there is no such memory, or it cannot be opened.
    pub fn adopt(self, machine: &Machine, gpu: GpuNode) -> Result<Buffer, Errno> {
        let file = self.open().map_err(|_| Errno::INVALID)?;
        let (offset, bytes) = (u64::from(self.first) * PAGE, self.bytes());
        let part = gpu.store(machine)?.adopt(file, offset, bytes).map_err(Errno::of)?;
        let (host, part) = (part.host, Some(Arc::new(part)));
        Ok(Buffer { address: 0, bytes, gpu, flags: self.flags, host, part })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_says_all_of_its_memory() {
        let share = Share {
            process: 4_194_304,
            file: 0xfedc,
            first: 0x0fff_fffe,
            pages: 0x1234_5678,
            node: 16,
            flags: 0xfc00_0003,
        };
        assert_eq!(Share::of_words(share.words()), share);
        let least = Share { process: 1, file: 3, first: 1, pages: 1, node: 1, flags: 1 };
        assert_eq!(Share::of_words(least.words()), least);
    }
}
