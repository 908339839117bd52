//! Queues.

use super::abi::*;
use super::error::Errno;
use super::process::Process;
use crate::code::find_loader_list;
use crate::map::GpuAddress;
use crate::queue::{Pointers, Queue, QueueKind, Ring};
use crate::topology::GLOBAL_SYNC;

/// Queues for copies: by any engine, by one that serves links between GPUs, by a given one.
const SDMA: u32 = 1;
const SDMA_LINKS: u32 = 3;
const SDMA_ENGINE: u32 = 4;
const AQL: u32 = 2;

/// Doorbells of a page.
const DOORBELLS: u64 = 1024;

pub fn create(process: &Process, own: &mut CreateQueue) -> Result<(), Errno> {
    let gpu = process.gpu(own.gpu_id)?;
    let kind = match own.queue_type {
        AQL => QueueKind::Compute,
        SDMA | SDMA_LINKS | SDMA_ENGINE => QueueKind::Sdma,
        _ => return Err(Errno::INVALID),
    };
    let ring = Ring::new(own.ring_base_address, own.ring_size.into()).ok_or(Errno::INVALID)?;
    let [read, write] = [own.read_pointer_address, own.write_pointer_address].map(GpuAddress);
    let pointers = Pointers { read, write };
    // The thread that is here may ask the system's loader; those of the GPU must not.
    if process.machine.loader_list() == 0 {
        process.machine.set_loader_list(find_loader_list());
    }
    let make = |id| Queue::new(id, gpu.0, kind, ring, pointers, process.machine.map());
    let queue = process.machine.add_queue(make).ok_or(Errno::INVALID)?;
    own.queue_id = u32::try_from(queue.id).map_err(|_| Errno::NO_MEMORY)?;
    // Engines look at the write index itself, so that queues may share a doorbell.
    own.doorbell_offset = 8 * (queue.id % DOORBELLS);
    Ok(())
}

pub fn destroy(process: &Process, own: &mut DestroyQueue) -> Result<(), Errno> {
    process.machine.remove_queue(own.queue_id.into()).then_some(()).ok_or(Errno::INVALID)
}

/// Priorities and shares of the GPU: kernels run one after another.
pub fn update(process: &Process, own: &mut UpdateQueue) -> Result<(), Errno> {
    process.machine.has_queue(own.queue_id.into()).then_some(()).ok_or(Errno::INVALID)
}

/// Which compute units run a workgroup makes no difference.
pub fn set_units(process: &Process, own: &mut SetCuMask) -> Result<(), Errno> {
    process.machine.has_queue(own.queue_id.into()).then_some(()).ok_or(Errno::INVALID)
}

/// Lets kernels of a queue use global wave sync: cooperative launches are made there.
pub fn give_global_sync(process: &Process, own: &mut AllocQueueGws) -> Result<(), Errno> {
    if own.num_gws > GLOBAL_SYNC.into() {
        return Err(Errno::INVALID);
    }
    own.first_gws = 0;
    process.machine.give_global_sync(own.queue_id.into()).then_some(()).ok_or(Errno::INVALID)
}
