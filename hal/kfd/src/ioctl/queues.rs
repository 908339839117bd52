//! Calls for queues.

use super::abi::*;
use super::error::Errno;
use super::process::Process;
use crate::loader::find_loader_list;
use crate::map::GpuAddress;
use crate::pm4::LaunchRecord;
use crate::queue::{Pointers, Queue, QueueKind, Ring};
use crate::topology::GWS_RESOURCES;

// Types of queues, `KFD_IOC_QUEUE_TYPE_*`.
/// PM4 packets.
const COMPUTE: u32 = 0;
const SDMA: u32 = 1;
const COMPUTE_AQL: u32 = 2;
/// SDMA on an engine for links between GPUs.
const SDMA_XGMI: u32 = 3;
/// SDMA on an engine that the program selects.
const SDMA_BY_ENGINE_ID: u32 = 4;

/// Number of doorbells in a page.
const DOORBELLS: u64 = 1024;

pub fn create(process: &Process, args: &mut CreateQueue) -> Result<(), Errno> {
    let gpu = process.gpu(args.gpu_id)?;
    let kind = match args.queue_type {
        COMPUTE => QueueKind::Pm4,
        COMPUTE_AQL => QueueKind::Compute,
        SDMA | SDMA_XGMI | SDMA_BY_ENGINE_ID => QueueKind::Sdma,
        _ => return Err(Errno::INVALID),
    };
    let ring = Ring::new(args.ring_base_address, args.ring_size.into()).ok_or(Errno::INVALID)?;
    let [read, write] = [args.read_pointer_address, args.write_pointer_address].map(GpuAddress);
    let pointers = Pointers { read, write };
    let record = LaunchRecord::new(args.eop_buffer_address, args.eop_buffer_size);
    // Hardware cannot signal the end of a packet without the buffer either.
    if kind == QueueKind::Pm4 && record.is_none() {
        return Err(Errno::INVALID);
    }
    // This thread of the program may call the dynamic linker; engine threads must not.
    if process.machine.loader_list() == 0 {
        process.machine.set_loader_list(find_loader_list());
    }
    let make = |id| Queue::new(id, gpu.0, kind, ring, pointers, record, process.machine.map());
    let queue = process.machine.add_queue(make).ok_or(Errno::INVALID)?;
    args.queue_id = u32::try_from(queue.id).map_err(|_| Errno::NO_MEMORY)?;
    // Queues may share a doorbell: engines look at the write pointers.
    args.doorbell_offset = 8 * (queue.id % DOORBELLS);
    Ok(())
}

/// Destroys a queue. Waits until nothing of it is executed any more, see [`Queue::destroy`].
pub fn destroy(process: &Process, args: &mut DestroyQueue) -> Result<(), Errno> {
    process.machine.remove_queue(args.queue_id.into()).then_some(()).ok_or(Errno::INVALID)
}

/// Sets the priority of a queue, which has no effect: kernels are executed one after another.
pub fn update(process: &Process, args: &mut UpdateQueue) -> Result<(), Errno> {
    process.machine.has_queue(args.queue_id.into()).then_some(()).ok_or(Errno::INVALID)
}

/// Sets the compute units of a queue, which has no effect.
pub fn set_cu_mask(process: &Process, args: &mut SetCuMask) -> Result<(), Errno> {
    process.machine.has_queue(args.queue_id.into()).then_some(()).ok_or(Errno::INVALID)
}

/// Lets the kernels of a queue use global wave sync, for cooperative launches.
pub fn allocate_gws(process: &Process, args: &mut AllocQueueGws) -> Result<(), Errno> {
    if args.num_gws > GWS_RESOURCES.into() {
        return Err(Errno::INVALID);
    }
    args.first_gws = 0;
    process.machine.enable_global_sync(args.queue_id.into()).then_some(()).ok_or(Errno::INVALID)
}
