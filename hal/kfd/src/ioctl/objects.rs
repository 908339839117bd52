//! Memory by the handles that render nodes have for it, and where they map it: virtual memory that
//! programs manage themselves.

use super::buffers::Buffer;
use super::error::Errno;
use super::gpu::GpuNode;
use super::render_abi::*;
use crate::machine::Machine;
use crate::memory::PAGE;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

    /// The handle of memory, which gets one if it has none.
    pub fn open(&self, gpu: GpuNode, buffer: Buffer) -> u32 {
        let mut known = self.lock();
        let has_part = |object: &Object| {
            let parts = object.buffer.part.as_ref().zip(buffer.part.as_ref());
            object.gpu == gpu && parts.is_some_and(|(one, other)| Arc::ptr_eq(one, other))
        };
        // The same memory has one handle.
        let old = known.all.iter().find(|(_, object)| has_part(object)).map(|(handle, _)| *handle);
        match old {
            Some(handle) => handle,
            None => {
                known.last += 1;
                let handle = known.last;
                known.all.insert(handle, Object { gpu, buffer, mapped: BTreeMap::new() });
                handle
            }
        }
    }

    /// Gives a handle up; where the memory was mapped, it is not any more.
    pub fn close(&self, machine: &Machine, gpu: GpuNode, own: &mut GemClose) -> Result<(), Errno> {
        let object = {
            let mut known = self.lock();
            known.get(gpu, own.handle)?;
            known.all.remove(&own.handle).ok_or(Errno::INVALID)?
        };
        for address in object.mapped.keys() {
            take_away(machine, gpu, *address);
        }
        Ok(())
    }

    /// Says where programs map memory from in the node's file.
    pub fn locate(&self, gpu: GpuNode, own: &mut GemMmap) -> Result<(), Errno> {
        let mut known = self.lock();
        let object = known.get(gpu, own.handle_or_offset as u32)?;
        let part = object.buffer.part.as_ref().ok_or(Errno::INVALID)?;
        own.handle_or_offset = part.offset;
        Ok(())
    }

    /// Maps memory for a GPU at an address, or does not any more.
    pub fn map(&self, machine: &Machine, gpu: GpuNode, own: &mut GemVa) -> Result<(), Errno> {
        let mut known = self.lock();
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
                let is_done = machine.with_memory(|memory| {
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
                take_away(machine, gpu, own.va_address);
                Ok(())
            }
            _ => Err(Errno::INVALID),
        }
    }
}

impl Known {
    fn get(&mut self, gpu: GpuNode, handle: u32) -> Result<&mut Object, Errno> {
        let object = self.all.get_mut(&handle).filter(|object| object.gpu == gpu);
        object.ok_or(Errno::INVALID)
    }
}

const MAP: u32 = 1;
const UNMAP: u32 = 2;

/// Takes what is mapped at an address away from a GPU.
fn take_away(machine: &Machine, gpu: GpuNode, address: u64) {
    machine.with_memory(|memory| {
        let Some(block) = memory.blocks.get_mut(&address) else { return };
        block.nodes &= !gpu.bit();
        if block.nodes == 0 {
            memory.blocks.remove(&address);
        }
    });
}
