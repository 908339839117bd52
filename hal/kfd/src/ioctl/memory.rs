//! Memory: what GPUs have, and what of the program's own they may access.

use super::abi::*;
use super::buffers::*;
use super::error::Errno;
use super::gpu::GpuNode;
use super::process::Process;
use super::program::read_array;
use crate::lost::missing;
use crate::memory::PAGE;
use crate::store::Store;
use crate::svm;
use std::sync::Arc;

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
        GPU | HOST => Some(part(gpu.store(&process.machine)?)?),
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
    buffer.place(&process.machine)?;
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
    process.buffers.remove(own.handle);
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
