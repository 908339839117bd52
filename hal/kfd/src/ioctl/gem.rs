//! GEM objects: memory by handle of a render node, and its mappings for the node's GPU. With them,
//! programs manage virtual memory themselves.

use super::arguments::{bytes_of, write_bytes};
use super::buffers::{ADDRESSES_END, Buffer, VRAM};
use super::error::Errno;
use super::gpu::GpuNode;
use super::render_abi::*;
use crate::machine::Machine;
use crate::memory::PAGE;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The objects of all render nodes.
#[derive(Default)]
pub struct GemObjects(Mutex<ObjectTable>);

#[derive(Default)]
struct ObjectTable {
    by_handle: BTreeMap<u32, Object>,
    last_handle: u32,
}

/// Memory that a render node has a handle for.
struct Object {
    gpu: GpuNode,
    buffer: Buffer,
    /// Address and size in bytes of each mapping.
    mappings: BTreeMap<u64, u64>,
}

impl GemObjects {
    fn lock(&self) -> MutexGuard<'_, ObjectTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Address and size in bytes of each mapping for any GPU.
    pub fn mappings(&self) -> Vec<(u64, u64)> {
        let table = self.lock();
        let all = table.by_handle.values().flat_map(|object| &object.mappings);
        let all: BTreeMap<u64, u64> = all.map(|(address, bytes)| (*address, *bytes)).collect();
        all.into_iter().collect()
    }

    /// The handle of a buffer. The same memory always has the same handle.
    pub fn open(&self, gpu: GpuNode, buffer: Buffer) -> u32 {
        let mut table = self.lock();
        let is_same_memory = |object: &Object| {
            let allocations = object.buffer.allocation.as_ref().zip(buffer.allocation.as_ref());
            object.gpu == gpu && allocations.is_some_and(|(old, new)| Arc::ptr_eq(old, new))
        };
        let known = table.by_handle.iter().find(|(_, object)| is_same_memory(object));
        match known.map(|(handle, _)| *handle) {
            Some(handle) => handle,
            None => {
                table.last_handle += 1;
                let handle = table.last_handle;
                table.by_handle.insert(handle, Object { gpu, buffer, mappings: BTreeMap::new() });
                handle
            }
        }
    }

    /// Closes a handle and unmaps its memory.
    pub fn close(&self, machine: &Machine, gpu: GpuNode, args: &mut GemClose) -> Result<(), Errno> {
        let object = {
            let mut table = self.lock();
            table.get(gpu, args.handle)?;
            table.by_handle.remove(&args.handle).ok_or(Errno::INVALID)?
        };
        for address in object.mappings.keys() {
            unmap(machine, gpu, *address);
        }
        Ok(())
    }

    /// Looks up the offset of an object's memory in the node's file.
    pub fn mmap_offset(&self, gpu: GpuNode, args: &mut GemMmap) -> Result<(), Errno> {
        let mut table = self.lock();
        let object = table.get(gpu, args.handle_or_offset as u32)?;
        let allocation = object.buffer.allocation.as_ref().ok_or(Errno::INVALID)?;
        args.handle_or_offset = allocation.offset;
        Ok(())
    }

    /// Reads or sets the metadata of an object's memory, which all processes see that share the
    /// memory.
    pub fn metadata(
        &self,
        machine: &Machine,
        gpu: GpuNode,
        args: &mut GemMetadata,
    ) -> Result<(), Errno> {
        let mut table = self.lock();
        let buffer = &table.get(gpu, args.handle)?.buffer;
        let allocation = buffer.allocation.as_ref().ok_or(Errno::INVALID)?;
        let store = buffer.gpu.store(machine)?;
        let mut bytes = [0; size_of::<[u64; 35]>()];
        match args.op {
            SET_METADATA => {
                // The third word has the size of the data in its low half.
                if args.data[2] as u32 > MAX_METADATA {
                    return Err(Errno::INVALID);
                }
                for (bytes, word) in bytes.chunks_exact_mut(8).zip(&args.data) {
                    bytes.copy_from_slice(&word.to_ne_bytes());
                }
                store.write_description(allocation, &bytes).map_err(Errno::from_io)
            }
            GET_METADATA => {
                store.read_description(allocation, &mut bytes).map_err(Errno::from_io)?;
                let (words, _) = bytes.as_chunks::<8>();
                args.data = std::array::from_fn(|index| u64::from_ne_bytes(words[index]));
                Ok(())
            }
            _ => Err(Errno::INVALID),
        }
    }

    /// Writes the properties of an object's memory to an address of the program.
    pub fn operate(&self, gpu: GpuNode, args: &mut GemOp) -> Result<(), Errno> {
        let mut table = self.lock();
        let buffer = &table.get(gpu, args.handle)?.buffer;
        if args.op != GET_CREATE_INFO {
            return Err(Errno::INVALID);
        }
        let properties = GemCreate {
            bo_size: buffer.bytes,
            alignment: PAGE,
            domains: if buffer.flags & VRAM != 0 { DOMAIN_VRAM } else { DOMAIN_GTT },
            domain_flags: 0,
        };
        // SAFETY: the program's structure is at this address.
        unsafe { write_bytes(args.value, bytes_of(&properties)) }
    }

    /// Maps an object for its GPU, or unmaps it.
    pub fn change_mapping(
        &self,
        machine: &Machine,
        gpu: GpuNode,
        args: &mut GemVa,
    ) -> Result<(), Errno> {
        let mut table = self.lock();
        let object = table.get(gpu, args.handle)?;
        match args.operation {
            MAP => object.map(machine, args),
            UNMAP => {
                object.mappings.remove(&args.va_address).ok_or(Errno::INVALID)?;
                unmap(machine, gpu, args.va_address);
                Ok(())
            }
            _ => Err(Errno::INVALID),
        }
    }
}

impl ObjectTable {
    fn get(&mut self, gpu: GpuNode, handle: u32) -> Result<&mut Object, Errno> {
        let object = self.by_handle.get_mut(&handle).filter(|object| object.gpu == gpu);
        object.ok_or(Errno::INVALID)
    }
}

impl Object {
    fn map(&mut self, machine: &Machine, args: &GemVa) -> Result<(), Errno> {
        let numbers = [args.va_address, args.offset_in_bo, args.map_size];
        let is_aligned = numbers.iter().all(|number| number.is_multiple_of(PAGE));
        let end = args.offset_in_bo.checked_add(args.map_size);
        let is_inside = end.is_some_and(|end| end <= self.buffer.bytes);
        let is_address = args.va_address < ADDRESSES_END;
        if !is_aligned || !is_inside || args.map_size == 0 || !is_address {
            return Err(Errno::INVALID);
        }
        let gpu = self.gpu.bit();
        let block = self.buffer.block(args.offset_in_bo, args.map_size, gpu);
        let is_mapped = machine.with_memory(|memory| {
            match memory.blocks.get_mut(&args.va_address) {
                // Another GPU has mapped the same memory there.
                Some(old) if (old.host, old.bytes) == (block.host, block.bytes) => {
                    old.nodes |= gpu;
                    true
                }
                _ => memory.add(args.va_address, block),
            }
        });
        is_mapped.then_some(()).ok_or(Errno::INVALID)?;
        self.mappings.insert(args.va_address, args.map_size);
        Ok(())
    }
}

// Operations of `AMDGPU_GEM_METADATA_OP_*`.
const SET_METADATA: u32 = 1;
const GET_METADATA: u32 = 2;
/// Largest size of the data of metadata in bytes.
const MAX_METADATA: u32 = 256;

/// `AMDGPU_GEM_OP_GET_GEM_CREATE_INFO`.
const GET_CREATE_INFO: u32 = 0;

// Kinds of memory, `AMDGPU_GEM_DOMAIN_*`.
const DOMAIN_GTT: u64 = 2;
const DOMAIN_VRAM: u64 = 4;

// Operations of `AMDGPU_VA_OP_*`.
const MAP: u32 = 1;
const UNMAP: u32 = 2;

/// Takes the block at an address away from a GPU.
fn unmap(machine: &Machine, gpu: GpuNode, address: u64) {
    machine.with_memory(|memory| {
        let Some(block) = memory.blocks.get_mut(&address) else { return };
        block.nodes &= !gpu.bit();
        if block.nodes == 0 {
            memory.blocks.remove(&address);
        }
    });
}
