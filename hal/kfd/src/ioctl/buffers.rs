//! Buffers: memory that was allocated or imported by a call on `/dev/kfd`, by handle.

use super::error::Errno;
use super::gpu::GpuNode;
use crate::machine::Machine;
use crate::memory::{Block, PAGE};
use crate::store::Allocation;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The buffers of a process.
#[derive(Default)]
pub struct Buffers(Mutex<BufferTable>);

#[derive(Default)]
struct BufferTable {
    by_handle: BTreeMap<u64, Buffer>,
    last_handle: u64,
}

/// A buffer.
#[derive(Clone)]
pub struct Buffer {
    /// Address for GPUs; 0 for memory that render nodes map.
    pub address: u64,
    pub bytes: u64,
    /// GPU on which the memory was allocated.
    pub gpu: GpuNode,
    /// Flags of the allocation.
    pub flags: u32,
    /// Address in this process.
    pub host: u64,
    /// Backing memory; `None` for memory of the program (userptr).
    pub allocation: Option<Arc<Allocation>>,
}

impl Buffer {
    /// A memory block for a part of the buffer, which the GPUs of a bit mask may access.
    pub fn block(&self, offset: u64, bytes: u64, nodes: u64) -> Block {
        let is_on_host = self.flags & (GTT | USERPTR) != 0;
        Block {
            bytes,
            host: self.host + offset,
            node: if is_on_host { 0 } else { self.gpu.0 },
            is_executable: self.flags & EXECUTABLE != 0,
            nodes,
            unmapped: self.allocation.is_none().then(Vec::new),
        }
    }

    /// Adds the buffer to the machine's memory at its GPU address, if it has one.
    ///
    /// # Errors
    /// [`Errno::INVALID`] for an invalid address, or if the addresses are in use.
    pub fn add_to(&self, machine: &Machine) -> Result<(), Errno> {
        let end = self.address.checked_add(self.bytes).filter(|end| *end <= ADDRESSES_END);
        if end.is_none() || !self.address.is_multiple_of(PAGE) {
            return Err(Errno::INVALID);
        }
        let block = self.block(0, self.bytes, 0);
        let is_added =
            self.address == 0 || machine.with_memory(|memory| memory.add(self.address, block));
        is_added.then_some(()).ok_or(Errno::INVALID)
    }
}

/// End of the addresses of GPUs and programs.
pub const ADDRESSES_END: u64 = 1 << 47;

// Flags of an allocation, `KFD_IOC_ALLOC_MEM_FLAGS_*`.
pub const VRAM: u32 = 1 << 0;
/// Host memory.
pub const GTT: u32 = 1 << 1;
/// Memory of the program.
pub const USERPTR: u32 = 1 << 2;
pub const DOORBELL: u32 = 1 << 3;
pub const MMIO_REMAP: u32 = 1 << 4;
/// Mask of the flags that select a kind of memory.
pub const KINDS: u32 = VRAM | GTT | USERPTR | DOORBELL | MMIO_REMAP;
const EXECUTABLE: u32 = 1 << 30;

impl Buffers {
    fn lock(&self) -> MutexGuard<'_, BufferTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The buffer with a handle.
    ///
    /// # Errors
    /// [`Errno::INVALID`] if there is none.
    pub fn get(&self, handle: u64) -> Result<Buffer, Errno> {
        self.lock().by_handle.get(&handle).cloned().ok_or(Errno::INVALID)
    }

    /// Adds a buffer and returns its handle.
    pub fn add(&self, buffer: Buffer) -> u64 {
        let mut table = self.lock();
        table.last_handle += 1;
        let handle = table.last_handle;
        table.by_handle.insert(handle, buffer);
        handle
    }

    /// Number of bytes of a GPU's memory that buffers use.
    pub fn used(&self, gpu: GpuNode) -> u64 {
        let table = self.lock();
        let is_on_gpu = |buffer: &&Buffer| buffer.gpu == gpu && buffer.flags & VRAM != 0;
        table.by_handle.values().filter(is_on_gpu).map(|buffer| buffer.bytes).sum()
    }

    /// Removes the buffer with a handle.
    pub fn remove(&self, handle: u64) {
        self.lock().by_handle.remove(&handle);
    }
}
