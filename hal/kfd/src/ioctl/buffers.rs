//! Memory: what GPUs have, and what of the program's own they may access.

use super::abi::*;
use super::error::Errno;
use super::process::{GpuNode, Process};
use super::request::read_array;
use crate::memory::{Block, PAGE};
use crate::store::{Part, Store};
use crate::svm;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the driver has given handles for.
#[derive(Default)]
pub struct Buffers(Mutex<Known>);

#[derive(Default)]
struct Known {
    all: BTreeMap<u64, Buffer>,
    last: u64,
}

/// Memory that has a handle.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    /// Where GPUs have it.
    address: u64,
    bytes: u64,
    source: Source,
}

/// What it is made of.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// Memory of a GPU.
    Gpu(GpuNode, Part),
    /// Memory of the host that the driver keeps for this GPU.
    Host(GpuNode, Part),
    /// Pages of the compute device: doorbells and registers.
    Device(Part),
    /// The program's own.
    Program,
}

/// The address after the last that GPUs have for memory.
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

    fn get(&self, handle: u64) -> Result<Buffer, Errno> {
        self.lock().all.get(&handle).copied().ok_or(Errno::INVALID)
    }

    /// Whether there is memory with this handle.
    pub fn has(&self, handle: u64) -> bool {
        self.get(handle).is_ok()
    }

    fn add(&self, buffer: Buffer) -> u64 {
        let mut known = self.lock();
        known.last += 1;
        let handle = known.last;
        known.all.insert(handle, buffer);
        handle
    }

    /// Bytes of a GPU that are used.
    fn used(&self, gpu: GpuNode) -> u64 {
        let known = self.lock();
        let own = known.all.values().filter_map(|buffer| match buffer.source {
            Source::Gpu(own, _) if own == gpu => Some(buffer.bytes),
            _ => None,
        });
        own.sum()
    }
}

/// Bytes of a GPU that are left.
fn left(process: &Process, gpu: GpuNode) -> u64 {
    process.machine.topology.board().memory_bytes.saturating_sub(process.buffers.used(gpu))
}

pub fn available(process: &Process, own: &mut GetAvailableMemory) -> Result<(), Errno> {
    own.available = left(process, process.gpu(own.gpu_id)?);
    Ok(())
}

pub fn allocate(process: &Process, own: &mut AllocMemory) -> Result<(), Errno> {
    let gpu = process.gpu(own.gpu_id)?;
    let bytes = own.size.checked_next_multiple_of(PAGE).filter(|bytes| *bytes > 0);
    let bytes = bytes.ok_or(Errno::INVALID)?;
    let end = own.va_addr.checked_add(bytes);
    if !own.va_addr.is_multiple_of(PAGE) || end.is_none_or(|end| end > ADDRESSES_END) {
        return Err(Errno::INVALID);
    }
    let part = |store: &Store| store.allocate(bytes).ok_or(Errno::NO_MEMORY);
    let (source, host, offset, node) = match own.flags & KINDS {
        GPU if bytes > left(process, gpu) => return Err(Errno::NO_MEMORY),
        GPU => {
            let part = part(process.store(gpu)?)?;
            (Source::Gpu(gpu, part), part.host, part.offset, gpu.0)
        }
        HOST => {
            let part = part(process.store(gpu)?)?;
            (Source::Host(gpu, part), part.host, part.offset, 0)
        }
        DOORBELLS | REGISTERS => {
            let part = part(&process.machine.pages)?;
            (Source::Device(part), part.host, part.offset, gpu.0)
        }
        PROGRAM if own.mmap_offset != 0 && own.mmap_offset.is_multiple_of(PAGE) => {
            (Source::Program, own.mmap_offset, own.mmap_offset, 0)
        }
        _ => return Err(Errno::INVALID),
    };
    let buffer = Buffer { address: own.va_addr, bytes, source };
    if own.va_addr != 0 {
        let is_executable = own.flags & EXECUTABLE != 0;
        let block = Block { bytes, host, node, is_executable, nodes: 0 };
        let is_new = process.machine.with_memory(|memory| memory.add(own.va_addr, block));
        if !is_new {
            give_back(process, &buffer);
            return Err(Errno::INVALID);
        }
    }
    own.handle = process.buffers.add(buffer);
    own.mmap_offset = offset;
    Ok(())
}

fn give_back(process: &Process, buffer: &Buffer) {
    match buffer.source {
        Source::Gpu(gpu, part) | Source::Host(gpu, part) => {
            if let Ok(store) = process.store(gpu) {
                store.free(part);
            }
        }
        Source::Device(part) => process.machine.pages.free(part),
        Source::Program => {}
    }
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
    give_back(process, &buffer);
    Ok(())
}

/// Changes which GPUs may access memory.
fn change(
    process: &Process,
    own: &mut MapMemory,
    change: impl Fn(u64, u64) -> u64,
) -> Result<(), Errno> {
    let buffer = process.buffers.get(own.handle)?;
    // SAFETY: the program has as many as it says.
    let ids: Vec<GpuId> = unsafe { read_array(own.device_ids_array_ptr, own.n_devices) }?;
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
