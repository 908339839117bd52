//! Memory by the handles that render nodes have for it, and where they map it: virtual memory that
//! programs manage themselves.

use super::buffers::Buffer;
use super::error::Errno;
use super::process::{GpuNode, Process};
use super::render_abi::*;
use crate::memory::PAGE;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The handles of all render nodes.
#[derive(Default)]
pub struct Objects(Mutex<Known>);

#[derive(Default)]
struct Known {
    all: BTreeMap<u32, Object>,
    last: u32,
}

/// Memory that a render node has a handle for.
struct Object {
    gpu: GpuNode,
    buffer: Buffer,
    /// Where it is mapped: addresses, and how many bytes.
    mapped: BTreeMap<u64, u64>,
}

impl Objects {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is mapped, for whichever GPUs: addresses, and bytes from there on.
    pub fn mappings(&self) -> Vec<(u64, u64)> {
        let known = self.lock();
        let all = known.all.values().flat_map(|object| &object.mapped);
        let all: BTreeMap<u64, u64> = all.map(|(address, bytes)| (*address, *bytes)).collect();
        all.into_iter().collect()
    }
}

impl Known {
    fn get(&mut self, gpu: GpuNode, handle: u32) -> Result<&mut Object, Errno> {
        let object = self.all.get_mut(&handle).filter(|object| object.gpu == gpu);
        object.ok_or(Errno::INVALID)
    }
}

/// Gives the memory of a file a handle.
pub fn open(process: &Process, gpu: GpuNode, own: &mut PrimeHandle) -> Result<(), Errno> {
    let buffer = process.files.get(process, gpu, own.fd)?;
    let mut known = process.objects.lock();
    let has_part = |object: &Object| {
        let parts = object.buffer.part.as_ref().zip(buffer.part.as_ref());
        object.gpu == gpu && parts.is_some_and(|(one, other)| std::sync::Arc::ptr_eq(one, other))
    };
    // The same memory has one handle.
    let old = known.all.iter().find(|(_, object)| has_part(object)).map(|(handle, _)| *handle);
    own.handle = match old {
        Some(handle) => handle,
        None => {
            known.last += 1;
            let handle = known.last;
            known.all.insert(handle, Object { gpu, buffer, mapped: BTreeMap::new() });
            handle
        }
    };
    Ok(())
}

/// Gives a handle up; where the memory was mapped, it is not any more.
pub fn close(process: &Process, gpu: GpuNode, own: &mut GemClose) -> Result<(), Errno> {
    let object = {
        let mut known = process.objects.lock();
        known.get(gpu, own.handle)?;
        known.all.remove(&own.handle).ok_or(Errno::INVALID)?
    };
    for address in object.mapped.keys() {
        take_away(process, gpu, *address);
    }
    Ok(())
}

/// Says where programs map memory from in the node's file.
pub fn locate(process: &Process, gpu: GpuNode, own: &mut GemMmap) -> Result<(), Errno> {
    let mut known = process.objects.lock();
    let object = known.get(gpu, own.handle_or_offset as u32)?;
    let part = object.buffer.part.as_ref().ok_or(Errno::INVALID)?;
    own.handle_or_offset = part.offset;
    Ok(())
}

const MAP: u32 = 1;
const UNMAP: u32 = 2;

/// Maps memory for a GPU at an address, or does not any more.
pub fn map(process: &Process, gpu: GpuNode, own: &mut GemVa) -> Result<(), Errno> {
    let mut known = process.objects.lock();
    let object = known.get(gpu, own.handle)?;
    match own.operation {
        MAP => {
            let is_aligned = [own.va_address, own.offset_in_bo, own.map_size]
                .iter()
                .all(|number| number.is_multiple_of(PAGE));
            let end = own.offset_in_bo.checked_add(own.map_size);
            let is_within = end.is_some_and(|end| end <= object.buffer.bytes);
            if !is_aligned || !is_within || own.map_size == 0 || own.va_address >= 1 << 47 {
                return Err(Errno::INVALID);
            }
            let block = object.buffer.block(own.offset_in_bo, own.map_size, gpu.bit());
            let is_done = process.machine.with_memory(|memory| {
                // Another GPU may have the same there.
                match memory.blocks.get_mut(&own.va_address) {
                    Some(old) if (old.host, old.bytes) == (block.host, block.bytes) => {
                        old.nodes |= gpu.bit();
                        true
                    }
                    _ => memory.add(own.va_address, block),
                }
            });
            is_done.then_some(()).ok_or(Errno::INVALID)?;
            object.mapped.insert(own.va_address, own.map_size);
            Ok(())
        }
        UNMAP => {
            object.mapped.remove(&own.va_address).ok_or(Errno::INVALID)?;
            take_away(process, gpu, own.va_address);
            Ok(())
        }
        _ => Err(Errno::INVALID),
    }
}

/// Takes what is mapped at an address away from a GPU.
fn take_away(process: &Process, gpu: GpuNode, address: u64) {
    process.machine.with_memory(|memory| {
        let Some(block) = memory.blocks.get_mut(&address) else { return };
        block.nodes &= !gpu.bit();
        if block.nodes == 0 {
            memory.blocks.remove(&address);
        }
    });
}
