//! Memory, shared virtual memory included.

use super::{give, status};
use crate::abi::*;
use crate::memory::Block;
use crate::opened::machine;
use crate::svm;

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtAllocMemory(
    node: u32,
    bytes: u64,
    flags: u32,
    place: *mut u64,
) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    if place.is_null() || bytes == 0 {
        return Status::InvalidParameter;
    }
    const FIXED_ADDRESS: u32 = 1 << 15;
    if flags & FIXED_ADDRESS != 0 {
        return Status::NotSupported;
    }
    match machine.with_memory(|memory| memory.allocate(bytes, node, flags)) {
        // SAFETY: the runtime passes null or a `place` of its own for a value of this type.
        Ok(address) => unsafe { give(place, address) },
        Err(status) => status,
    }
}

#[unsafe(no_mangle)]
extern "C" fn hsaKmtFreeMemory(address: u64, _bytes: u64) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    let unmap = |block: &mut Block| block.nodes = 0;
    machine.with_memory(|memory| memory.allocations.get_mut(&address).map(unmap));
    status(machine.with_memory(|memory| memory.free(address)))
}

#[unsafe(no_mangle)]
extern "C" fn hsaKmtRegisterMemoryWithFlags(address: u64, bytes: u64, flags: u32) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    if address == 0 || bytes == 0 {
        return Status::InvalidParameter;
    }
    status(machine.with_memory(|memory| memory.register(address, bytes, flags)))
}

#[unsafe(no_mangle)]
extern "C" fn hsaKmtDeregisterMemory(address: u64) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    status(machine.with_memory(|memory| memory.deregister(address)))
}

/// Lets GPUs, as bits by node, access the block that an address is in.
unsafe fn map(address: u64, gpu_address: *mut u64, nodes: u64) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    let found = machine.with_memory(|memory| {
        let (_, block) = memory.block_around_mut(address)?;
        block.nodes |= nodes;
        Some(block.gpu_address(address))
    });
    let Some(own) = found else { return Status::InvalidParameter };
    if gpu_address.is_null() {
        return Status::Success;
    }
    // SAFETY: the runtime's.
    unsafe { give(gpu_address, own) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtMapMemoryToGPU(
    address: u64,
    _bytes: u64,
    gpu_address: *mut u64,
) -> Status {
    let nodes = machine().map_or(0, |machine| machine.all_gpus());
    // SAFETY: the runtime passes null or a place of its own for the address.
    unsafe { map(address, gpu_address, nodes) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtMapMemoryToGPUNodes(
    address: u64,
    _bytes: u64,
    gpu_address: *mut u64,
    _flags: u32,
    count: u64,
    nodes: *const u32,
) -> Status {
    if nodes.is_null() {
        return Status::InvalidParameter;
    }
    // SAFETY: an array of the runtime with `count` nodes.
    let nodes = unsafe { std::slice::from_raw_parts(nodes, count as usize) };
    let bits = nodes.iter().fold(0, |bits, node| bits | 1u64.checked_shl(*node).unwrap_or(0));
    // SAFETY: the runtime passes null or a place of its own for the address.
    unsafe { map(address, gpu_address, bits) }
}

#[unsafe(no_mangle)]
extern "C" fn hsaKmtUnmapMemoryToGPU(address: u64) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    let found = machine
        .with_memory(|memory| memory.block_around_mut(address).map(|(_, block)| block.nodes = 0));
    if found.is_some() { Status::Success } else { Status::InvalidParameter }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtQueryPointerInfo(address: u64, place: *mut PointerInfo) -> Status {
    const ALLOCATED: u32 = 1;
    const REGISTERED: u32 = 2;
    let Some(machine) = machine() else { return Status::Error };
    let info = machine.with_memory(|memory| {
        let (start, block) = memory.block_around(address)?;
        Some(PointerInfo {
            kind: if block.registered == 0 { ALLOCATED } else { REGISTERED },
            node: block.node,
            flags: block.flags,
            cpu_address: start,
            gpu_address: block.gpu_address(start),
            bytes: block.bytes,
            registered_nodes: 0,
            mapped_nodes: 0,
            registered_list: 0,
            mapped_list: 0,
            user_data: block.user_data,
        })
    });
    match info {
        // SAFETY: the runtime passes null or a `place` of its own for a value of this type.
        Some(info) => unsafe { give(place, info) },
        None => {
            // The runtime reads that nothing is known of the address.
            // SAFETY: the runtime passes null or a `place` of its own for a value of this type.
            let given = unsafe { give(place, PointerInfo::default()) };
            if given == Status::Success { Status::Error } else { given }
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn hsaKmtSetMemoryUserData(address: u64, user_data: u64) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    let found = machine.with_memory(|memory| {
        memory.block_around_mut(address).map(|(_, block)| block.user_data = user_data)
    });
    if found.is_some() { Status::Success } else { Status::InvalidParameter }
}

#[unsafe(no_mangle)]
extern "C" fn hsaKmtSetMemoryPolicy(_: u32, _: u32, _: u32, _: u64, _: u64) -> Status {
    Status::Success
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtSVMSetAttr(
    address: u64,
    bytes: u64,
    count: u32,
    attributes: *const SvmAttribute,
) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    let Some(pages) = svm::pages(address, bytes).filter(|_| !attributes.is_null()) else {
        return Status::InvalidParameter;
    };
    // SAFETY: an array of the runtime with `count` attributes.
    let attributes = unsafe { std::slice::from_raw_parts(attributes, count as usize) };
    for SvmAttribute { kind, value } in attributes.iter().copied() {
        svm::set(machine, pages.clone(), svm::Attribute { kind, value });
    }
    Status::Success
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtSVMGetAttr(
    address: u64,
    bytes: u64,
    count: u32,
    attributes: *mut SvmAttribute,
) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    let Some(pages) = svm::pages(address, bytes).filter(|_| !attributes.is_null()) else {
        return Status::InvalidParameter;
    };
    // SAFETY: an array of the runtime with `count` attributes.
    let attributes = unsafe { std::slice::from_raw_parts_mut(attributes, count as usize) };
    for attribute in attributes {
        let SvmAttribute { kind, value } = *attribute;
        let mut own = svm::Attribute { kind, value };
        svm::get(machine, pages.clone(), &mut own);
        *attribute = SvmAttribute { kind: own.kind, value: own.value };
    }
    Status::Success
}
