//! Calls for memory: allocation, mapping for GPUs, and shared virtual memory.

use super::abi::*;
use super::arguments::read_array;
use super::buffers::*;
use super::error::Errno;
use super::gpu::GpuNode;
use super::process::Process;
use crate::memory::PAGE;
use crate::store::Store;
use crate::svm;
use crate::unmapped::unmapped;
use std::sync::Arc;

/// Number of unused bytes of a GPU's memory.
fn unused(process: &Process, gpu: GpuNode) -> u64 {
    let total = process.machine.topology.gpu(gpu.0).map_or(0, |gpu| gpu.board.memory_bytes);
    total.saturating_sub(process.buffers.used(gpu))
}

pub fn available(process: &Process, args: &mut GetAvailableMemory) -> Result<(), Errno> {
    args.available = unused(process, process.gpu(args.gpu_id)?);
    Ok(())
}

/// Returns `true` if these may be pages of a program.
fn is_user_space(start: u64, bytes: u64) -> bool {
    let end = start.checked_add(bytes).filter(|end| *end <= ADDRESSES_END);
    start != 0 && start.is_multiple_of(PAGE) && end.is_some()
}

pub fn allocate(process: &Process, args: &mut AllocMemory) -> Result<(), Errno> {
    let gpu = process.gpu(args.gpu_id)?;
    let bytes = args.size.checked_next_multiple_of(PAGE).filter(|bytes| *bytes > 0);
    let bytes = bytes.ok_or(Errno::INVALID)?;
    let allocate_from =
        |store: &Arc<Store>| store.allocate(bytes).map(Arc::new).ok_or(Errno::NO_MEMORY);
    let allocation = match args.flags & KINDS {
        VRAM if bytes > unused(process, gpu) => return Err(Errno::NO_MEMORY),
        VRAM | GTT => Some(allocate_from(gpu.store(&process.machine)?)?),
        DOORBELL | MMIO_REMAP => Some(allocate_from(&process.machine.driver_pages)?),
        USERPTR if is_user_space(args.mmap_offset, bytes) => {
            let pages = args.mmap_offset..args.mmap_offset + bytes;
            if !unmapped(pages).is_empty() {
                return Err(Errno::FAULT);
            }
            None
        }
        _ => return Err(Errno::INVALID),
    };
    // For memory of the program, `mmap_offset` is its address.
    let (offset, host) = match &allocation {
        Some(allocation) => (allocation.offset, allocation.host),
        None => (args.mmap_offset, args.mmap_offset),
    };
    let buffer = Buffer { address: args.va_addr, bytes, gpu, flags: args.flags, host, allocation };
    buffer.add_to(&process.machine)?;
    args.handle = process.buffers.add(buffer);
    args.mmap_offset = offset;
    Ok(())
}

pub fn free(process: &Process, args: &mut FreeMemory) -> Result<(), Errno> {
    let buffer = process.buffers.get(args.handle)?;
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
    process.buffers.remove(args.handle);
    Ok(())
}

/// Changes the GPUs that may access a buffer: `change` gets the bit masks of the nodes that may
/// access it and of the nodes in the arguments.
fn change_nodes(
    process: &Process,
    args: &mut MapMemory,
    change: impl Fn(u64, u64) -> u64,
) -> Result<(), Errno> {
    let buffer = process.buffers.get(args.handle)?;
    let ids: Vec<GpuId> = read_array(args.device_ids_array_ptr, args.n_devices)?;
    let mut bits = 0;
    for id in ids {
        bits |= process.gpu(id.0)?.bit();
    }
    let exists = process.machine.with_memory(|memory| {
        let block = memory.blocks.get_mut(&buffer.address);
        block.map(|block| block.nodes = change(block.nodes, bits)).is_some()
    });
    if !exists {
        return Err(Errno::INVALID);
    }
    args.n_success = args.n_devices;
    Ok(())
}

/// An element of an array of GPUs.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct GpuId(u32);

// SAFETY: a number.
unsafe impl Plain for GpuId {}

pub fn map(process: &Process, args: &mut MapMemory) -> Result<(), Errno> {
    change_nodes(process, args, |before, bits| before | bits)
}

pub fn unmap(process: &Process, args: &mut MapMemory) -> Result<(), Errno> {
    change_nodes(process, args, |before, bits| before & !bits)
}

/// Sets or gets attributes of shared virtual memory.
pub fn svm(
    process: &Process,
    args: &mut Svm,
    attributes: &mut [SvmAttribute],
) -> Result<(), Errno> {
    const SET: u32 = 0;
    const GET: u32 = 1;
    let pages = svm::pages(args.start_addr, args.size).ok_or(Errno::INVALID)?;
    if !unmapped(pages.clone()).is_empty() {
        return Err(Errno::FAULT);
    }
    let machine = &process.machine;
    // Programs name GPUs by `gpu_id`.
    let to_node = |attribute: &SvmAttribute| {
        let (kind, value) = (attribute.r#type, attribute.value);
        let value = if svm::is_access(kind) {
            process.gpu(value).map_or(svm::NO_NODE, |gpu| gpu.0)
        } else {
            value
        };
        svm::Attribute { kind, value }
    };
    for attribute in attributes {
        let mut converted = to_node(attribute);
        match args.op {
            SET => svm::set(machine, pages.clone(), converted),
            GET => {
                svm::get(machine, pages.clone(), &mut converted);
                attribute.r#type = converted.kind;
                if !svm::is_access(converted.kind) {
                    attribute.value = converted.value;
                }
            }
            _ => return Err(Errno::INVALID),
        }
    }
    Ok(())
}
