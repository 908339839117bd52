//! Memory: what GPUs have, and what of the program's own they may access.

use super::abi::*;
use super::error::Errno;
use super::process::{GpuNode, Process};
use super::program::read_array;
use crate::lost::missing;
use crate::memory::{Block, PAGE};
use crate::store::{Part, Store};
use crate::svm;
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
    pub fn place(&self, process: &Process) -> Result<(), Errno> {
        let end = self.address.checked_add(self.bytes).filter(|end| *end <= ADDRESSES_END);
        if end.is_none() || !self.address.is_multiple_of(PAGE) {
            return Err(Errno::INVALID);
        }
        let block = self.block(0, self.bytes, 0);
        let is_free = self.address == 0
            || process.machine.with_memory(|memory| memory.add(self.address, block));
        is_free.then_some(()).ok_or(Errno::INVALID)
    }
}

/// The address after the last that GPUs and programs have for memory.
const ADDRESSES_END: u64 = 1 << 47;

const GPU: u32 = 1 << 0;
const HOST: u32 = 1 << 1;
const PROGRAM: u32 = 1 << 2;
const DOORBELLS: u32 = 1 << 3;
const REGISTERS: u32 = 1 << 4;
const KINDS: u32 = GPU | HOST | PROGRAM | DOORBELLS | REGISTERS;
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
    fn used(&self, gpu: GpuNode) -> u64 {
        let known = self.lock();
        let is_own = |buffer: &&Buffer| buffer.gpu == gpu && buffer.flags & GPU != 0;
        known.all.values().filter(is_own).map(|buffer| buffer.bytes).sum()
    }
}

/// Bytes of a GPU that are left.
fn left(process: &Process, gpu: GpuNode) -> u64 {
    let all = process.machine.topology.gpu(gpu.0).map_or(0, |own| own.board.memory_bytes);
    all.saturating_sub(process.buffers.used(gpu))
}

pub fn available(process: &Process, own: &mut GetAvailableMemory) -> Result<(), Errno> {
    own.available = left(process, process.gpu(own.gpu_id)?);
    Ok(())
}

/// Whether a program can have these pages.
fn is_programs(start: u64, bytes: u64) -> bool {
    let end = start.checked_add(bytes).filter(|end| *end <= ADDRESSES_END);
    start != 0 && start.is_multiple_of(PAGE) && end.is_some()
}

pub fn allocate(process: &Process, own: &mut AllocMemory) -> Result<(), Errno> {
    let gpu = process.gpu(own.gpu_id)?;
    let bytes = own.size.checked_next_multiple_of(PAGE).filter(|bytes| *bytes > 0);
    let bytes = bytes.ok_or(Errno::INVALID)?;
    let part = |store: &Arc<Store>| store.allocate(bytes).map(Arc::new).ok_or(Errno::NO_MEMORY);
    let part = match own.flags & KINDS {
        GPU if bytes > left(process, gpu) => return Err(Errno::NO_MEMORY),
        GPU | HOST => Some(part(process.store(gpu)?)?),
        DOORBELLS | REGISTERS => Some(part(&process.machine.pages)?),
        PROGRAM if is_programs(own.mmap_offset, bytes) => {
            let pages = own.mmap_offset..own.mmap_offset + bytes;
            if !missing(pages).is_empty() {
                return Err(Errno::FAULT);
            }
            None
        }
        _ => return Err(Errno::INVALID),
    };
    let offset = part.as_ref().map_or(own.mmap_offset, |part| part.offset);
    let host = part.as_ref().map_or(own.mmap_offset, |part| part.host);
    let buffer = Buffer { address: own.va_addr, bytes, gpu, flags: own.flags, host, part };
    buffer.place(process)?;
    own.handle = process.buffers.add(buffer);
    own.mmap_offset = offset;
    Ok(())
}

pub fn free(process: &Process, own: &mut FreeMemory) -> Result<(), Errno> {
    let buffer = process.buffers.get(own.handle)?;
    let is_mapped = process.machine.with_memory(|memory| {
        let block = memory.blocks.get(&buffer.address);
        let is_mapped = block.is_some_and(|block| block.nodes != 0);
        if !is_mapped {
            memory.blocks.remove(&buffer.address);
        }
        is_mapped
    });
    if is_mapped {
        return Err(Errno::BUSY);
    }
    process.buffers.lock().all.remove(&own.handle);
    Ok(())
}

/// Changes which GPUs may access memory.
fn change(
    process: &Process,
    own: &mut MapMemory,
    change: impl Fn(u64, u64) -> u64,
) -> Result<(), Errno> {
    let buffer = process.buffers.get(own.handle)?;
    let ids: Vec<GpuId> = read_array(own.device_ids_array_ptr, own.n_devices)?;
    let mut bits = 0;
    for id in ids {
        bits |= process.gpu(id.0)?.bit();
    }
    let is_there = process.machine.with_memory(|memory| {
        let block = memory.blocks.get_mut(&buffer.address);
        block.map(|block| block.nodes = change(block.nodes, bits)).is_some()
    });
    if !is_there {
        return Err(Errno::INVALID);
    }
    own.n_success = own.n_devices;
    Ok(())
}

/// An element of an array of GPUs.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct GpuId(u32);

// SAFETY: a number.
unsafe impl Plain for GpuId {}

pub fn map(process: &Process, own: &mut MapMemory) -> Result<(), Errno> {
    change(process, own, |before, bits| before | bits)
}

pub fn unmap(process: &Process, own: &mut MapMemory) -> Result<(), Errno> {
    change(process, own, |before, bits| before & !bits)
}

/// The program's memory at its own addresses.
pub fn shared(
    process: &Process,
    own: &mut Svm,
    attributes: &mut [SvmAttribute],
) -> Result<(), Errno> {
    const SET: u32 = 0;
    const GET: u32 = 1;
    let pages = svm::pages(own.start_addr, own.size).ok_or(Errno::INVALID)?;
    if !missing(pages.clone()).is_empty() {
        return Err(Errno::FAULT);
    }
    let machine = &process.machine;
    // An attribute's value is a GPU where one is meant.
    let node = |attribute: &SvmAttribute| svm::Attribute {
        kind: attribute.r#type,
        value: match svm::names_a_node(attribute.r#type) {
            true => process.gpu(attribute.value).map_or(svm::NO_NODE, |gpu| gpu.0),
            false => attribute.value,
        },
    };
    for attribute in attributes {
        let mut wanted = node(attribute);
        match own.op {
            SET => svm::set(machine, pages.clone(), wanted),
            GET => {
                svm::get(machine, pages.clone(), &mut wanted);
                attribute.r#type = wanted.kind;
                if !svm::names_a_node(wanted.kind) {
                    attribute.value = wanted.value;
                }
            }
            _ => return Err(Errno::INVALID),
        }
    }
    Ok(())
}
