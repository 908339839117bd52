//! Memory that has a handle.

use super::error::Errno;
use super::gpu::GpuNode;
use crate::machine::Machine;
use crate::memory::{Block, PAGE};
use crate::store::Part;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the driver has given handles for.
#[derive(Default)]
pub struct Buffers(Mutex<Known>);

#[derive(Default)]
struct Known {
    all: BTreeMap<u64, Buffer>,
    last: u64,
}

/// Memory that has a handle.
#[derive(Clone)]
pub struct Buffer {
    /// Where GPUs have it; 0 for memory that render nodes map.
    pub address: u64,
    pub bytes: u64,
    /// Whose it is.
    pub gpu: GpuNode,
    /// As it was asked for.
    pub flags: u32,
    /// Where this process has it.
    pub host: u64,
    /// What it is made of; nothing for the program's own.
    pub part: Option<Arc<Part>>,
}

impl Buffer {
    /// A block of it from this byte on, for these GPUs.
    pub fn block(&self, offset: u64, bytes: u64, nodes: u64) -> Block {
        let is_on_host = self.flags & (HOST | PROGRAM) != 0;
        Block {
            bytes,
            host: self.host + offset,
            node: if is_on_host { 0 } else { self.gpu.0 },
            is_executable: self.flags & EXECUTABLE != 0,
            nodes,
            lost: self.part.is_none().then(Vec::new),
        }
    }

    /// Puts it where GPUs are to have it, if it has such a place.
    ///
    /// # Errors
    /// [`Errno::INVALID`] if something else is there, or nothing can be.
    pub fn place(&self, machine: &Machine) -> Result<(), Errno> {
        let end = self.address.checked_add(self.bytes).filter(|end| *end <= ADDRESSES_END);
        if end.is_none() || !self.address.is_multiple_of(PAGE) {
            return Err(Errno::INVALID);
        }
        let block = self.block(0, self.bytes, 0);
        let is_free =
            self.address == 0 || machine.with_memory(|memory| memory.add(self.address, block));
        is_free.then_some(()).ok_or(Errno::INVALID)
    }
}

/// The address after the last that GPUs and programs have for memory.
pub const ADDRESSES_END: u64 = 1 << 47;

/// Where memory is: flags of an allocation (`KFD_IOC_ALLOC_MEM_FLAGS_*`).
pub const GPU: u32 = 1 << 0;
pub const HOST: u32 = 1 << 1;
pub const PROGRAM: u32 = 1 << 2;
pub const DOORBELLS: u32 = 1 << 3;
pub const REGISTERS: u32 = 1 << 4;
pub const KINDS: u32 = GPU | HOST | PROGRAM | DOORBELLS | REGISTERS;
const EXECUTABLE: u32 = 1 << 30;

impl Buffers {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory with this handle.
    ///
    /// # Errors
    /// [`Errno::INVALID`] if there is none.
    pub fn get(&self, handle: u64) -> Result<Buffer, Errno> {
        self.lock().all.get(&handle).cloned().ok_or(Errno::INVALID)
    }

    /// Gives memory a handle.
    pub fn add(&self, buffer: Buffer) -> u64 {
        let mut known = self.lock();
        known.last += 1;
        let handle = known.last;
        known.all.insert(handle, buffer);
        handle
    }

    /// Bytes of a GPU that are used.
    pub fn used(&self, gpu: GpuNode) -> u64 {
        let known = self.lock();
        let is_own = |buffer: &&Buffer| buffer.gpu == gpu && buffer.flags & GPU != 0;
        known.all.values().filter(is_own).map(|buffer| buffer.bytes).sum()
    }
    /// Takes a handle away.
    pub fn remove(&self, handle: u64) {
        self.lock().all.remove(&handle);
    }
}
