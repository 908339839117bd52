//! Queues.

use super::give;
use crate::abi::*;
use crate::opened::machine;
use crate::queue::{Pointers, Queue, QueueKind, Ring};
use crate::topology::GLOBAL_SYNC;

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtCreateQueue(
    node: u32,
    kind: u32,
    _percentage: u32,
    _priority: i32,
    ring: u64,
    ring_bytes: u64,
    _event: *mut Event,
    resource: *mut QueueResource,
) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    if !machine.is_gpu(node) {
        return Status::InvalidNode;
    }
    // SAFETY: the runtime's; its places are read and written.
    let Some(resource) = (unsafe { resource.as_mut() }) else { return Status::InvalidParameter };
    let kind = match kind {
        2 | 5 => QueueKind::Sdma,
        21 => QueueKind::Compute,
        _ => return Status::NotSupported,
    };
    let Some(ring) = Ring::new(ring, ring_bytes) else { return Status::InvalidParameter };
    let pointers = match kind {
        QueueKind::Compute if resource.read_pointer == 0 => return Status::InvalidParameter,
        QueueKind::Compute => {
            Pointers { read: resource.read_pointer, write: resource.write_pointer }
        }
        QueueKind::Sdma => Pointers { read: 0, write: 0 },
    };
    let make = |id| Queue::new(id, node, kind, ring, pointers, machine.map());
    // The driver, too, makes no queue in memory that is not there.
    let Some(queue) = machine.add_queue(make) else { return Status::InvalidParameter };
    resource.id = queue.id;
    resource.doorbell = queue.doorbell_address();
    resource.read_pointer = queue.read_address();
    resource.write_pointer = queue.write_address();
    Status::Success
}

#[unsafe(no_mangle)]
extern "C" fn hsaKmtDestroyQueue(id: u64) -> Status {
    match machine() {
        Some(machine) if machine.remove_queue(id) => Status::Success,
        _ => Status::InvalidHandle,
    }
}

#[unsafe(no_mangle)]
extern "C" fn hsaKmtUpdateQueue(
    id: u64,
    _percentage: u32,
    _priority: i32,
    _ring: u64,
    _ring_bytes: u64,
    _event: *mut Event,
) -> Status {
    match machine() {
        Some(machine) if machine.has_queue(id) => Status::Success,
        _ => Status::InvalidHandle,
    }
}

/// Lets kernels of a queue use global wave sync: cooperative launches are made there.
#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtAllocQueueGWS(id: u64, count: u32, first: *mut u32) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    if count == 0 || count > GLOBAL_SYNC.into() {
        return Status::InvalidParameter;
    }
    if !machine.give_global_sync(id) {
        return Status::InvalidHandle;
    }
    // SAFETY: the runtime passes null or a `first` of its own for a value of this type.
    if first.is_null() { Status::Success } else { unsafe { give(first, 0) } }
}

#[unsafe(no_mangle)]
extern "C" fn hsaKmtSetQueueCUMask(id: u64, _bits: u32, _mask: *const u32) -> Status {
    match machine() {
        Some(machine) if machine.has_queue(id) => Status::Success,
        _ => Status::InvalidHandle,
    }
}
