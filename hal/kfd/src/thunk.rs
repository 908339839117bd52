//! The functions of libhsakmt that the runtime imports. Each does what `hsakmt.h` says of it, as far
//! as an embedded GPU has a part in it.

#![allow(clippy::missing_safety_doc, reason = "the runtime calls them by the rules of hsakmt.h")]

use crate::abi::*;
use crate::clock::clock;
use crate::machine::{Machine, MachineError};
use crate::memory::Block;
use crate::queue::{Pointers, Queue, QueueKind, Ring};
use crate::topology::GLOBAL_SYNC;
use std::ffi::c_void;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Why there is no machine.
pub type OpenError = MachineError;

type Opener = fn() -> Option<Arc<Machine>>;

static OPENER: OnceLock<Opener> = OnceLock::new();
static MACHINE: OnceLock<Option<Arc<Machine>>> = OnceLock::new();

/// Says who makes the machine when the runtime asks for one for the first time.
pub fn on_open(opener: Opener) {
    let _ = OPENER.set(opener);
}

fn machine() -> Option<&'static Arc<Machine>> {
    MACHINE.get_or_init(|| OPENER.get().and_then(|open| open())).as_ref()
}

/// Has the machine of this process, if there is one, look at once which packets its compute queues
/// have got: packets are executed in the order in which they were seen. To be called when the
/// application has submitted some.
pub fn note_submissions() {
    if let Some(Some(machine)) = MACHINE.get() {
        machine.note_submissions();
    }
}

/// Writes a value where the runtime wants it.
unsafe fn give<T>(place: *mut T, value: T) -> Status {
    if place.is_null() {
        return Status::InvalidParameter;
    }
    // SAFETY: the runtime's, of this type.
    unsafe { place.write_unaligned(value) };
    Status::Success
}

/// Writes as many values as the runtime has places for.
unsafe fn give_all<T>(places: *mut T, count: u32, values: Option<Vec<T>>) -> Status {
    let Some(values) = values else { return Status::InvalidNode };
    for (index, value) in values.into_iter().take(count as usize).enumerate() {
        // SAFETY: an array of the runtime with `count` places.
        if unsafe { give(places.add(index), value) } != Status::Success {
            return Status::InvalidParameter;
        }
    }
    Status::Success
}

fn status(result: Result<(), Status>) -> Status {
    result.err().unwrap_or(Status::Success)
}

#[unsafe(no_mangle)]
extern "C" fn hsaKmtOpenKFD() -> Status {
    if machine().is_some() { Status::Success } else { Status::Error }
}

#[unsafe(no_mangle)]
extern "C" fn hsaKmtCloseKFD() -> Status {
    Status::Success
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtGetVersion(version: *mut VersionInfo) -> Status {
    // SAFETY: the runtime passes null or a `version` of its own for a value of this type.
    unsafe { give(version, VersionInfo { major: 1, minor: 10 }) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtAcquireSystemProperties(properties: *mut SystemProperties) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    let nodes = machine.topology.nodes();
    let own = SystemProperties { nodes, platform_oem: 0, platform_id: 0, platform_revision: 0 };
    // SAFETY: the runtime passes null or a `properties` of its own for a value of this type.
    unsafe { give(properties, own) }
}

#[unsafe(no_mangle)]
extern "C" fn hsaKmtReleaseSystemProperties() -> Status {
    Status::Success
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtGetNodeProperties(node: u32, place: *mut NodeProperties) -> Status {
    match machine().and_then(|machine| machine.topology.node(node)) {
        // SAFETY: the runtime passes null or a `place` of its own for a value of this type.
        Some(properties) => unsafe { give(place, properties) },
        None => Status::InvalidNode,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtGetNodeMemoryProperties(
    node: u32,
    count: u32,
    places: *mut MemoryProperties,
) -> Status {
    let banks = machine().and_then(|machine| machine.topology.memory(node));
    // SAFETY: the runtime passes `places` with room for `count` values of this type, or null.
    unsafe { give_all(places, count, banks) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtGetNodeCacheProperties(
    node: u32,
    _processor: u32,
    count: u32,
    places: *mut CacheProperties,
) -> Status {
    let caches = machine().and_then(|machine| machine.topology.caches(node));
    // SAFETY: the runtime passes `places` with room for `count` values of this type, or null.
    unsafe { give_all(places, count, caches) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtGetNodeIoLinkProperties(
    node: u32,
    count: u32,
    places: *mut IoLinkProperties,
) -> Status {
    let links = machine().and_then(|machine| machine.topology.links(node));
    // SAFETY: the runtime passes `places` with room for `count` values of this type, or null.
    unsafe { give_all(places, count, links) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtGetTileConfig(_node: u32, place: *mut TileConfig) -> Status {
    if place.is_null() {
        return Status::InvalidParameter;
    }
    // SAFETY: the runtime's; the tables that it brings have places that may stay as they are.
    let config = unsafe { &mut *place };
    (config.tile_count, config.macro_tile_count) = (0, 0);
    (config.address_config, config.banks, config.ranks) = (0, 0, 0);
    Status::Success
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtGetClockCounters(_node: u32, place: *mut ClockCounters) -> Status {
    let now = clock();
    // SAFETY: the runtime passes null or a `place` of its own for a value of this type.
    unsafe {
        give(place, ClockCounters { gpu: now, cpu: now, system: now, system_hz: 1_000_000_000 })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtRuntimeEnable(loader_list: *mut c_void, _setup_traps: bool) -> Status {
    if let Some(machine) = machine() {
        machine.set_loader_list(loader_list as u64);
    }
    // There is no debugger that could be attached.
    Status::NotSupported
}

#[unsafe(no_mangle)]
extern "C" fn hsaKmtRuntimeDisable() -> Status {
    Status::Success
}

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
unsafe extern "C" fn hsaKmtCreateEvent(
    wanted: *const EventDescriptor,
    is_manual: bool,
    is_signaled: bool,
    place: *mut *mut Event,
) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    if wanted.is_null() || place.is_null() {
        return Status::InvalidParameter;
    }
    // SAFETY: the runtime's.
    let wanted = unsafe { wanted.read_unaligned() };
    let mailboxes = match machine.mailboxes() {
        Ok(mailboxes) => mailboxes,
        Err(status) => return status,
    };
    match machine.events.create(&wanted, is_manual, is_signaled, mailboxes) {
        // SAFETY: the runtime passes null or a `place` of its own for a value of this type.
        // It gives the event back with `hsaKmtDestroyEvent`.
        Some(event) => unsafe { give(place, Box::into_raw(Box::new(event))) },
        None => Status::NoMemory,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtDestroyEvent(event: *mut Event) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    if event.is_null() {
        return Status::InvalidHandle;
    }
    // SAFETY: made by `hsaKmtCreateEvent`, and given back once.
    let event = unsafe { Box::from_raw(event) };
    machine.events.destroy(event.id);
    Status::Success
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtSetEvent(event: *const Event) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    // SAFETY: made by `hsaKmtCreateEvent`.
    match unsafe { event.as_ref() } {
        Some(event) => machine.events.set(event.id),
        None => Status::InvalidHandle,
    }
}

/// A time in milliseconds; nothing for ever.
fn time(milliseconds: u32) -> Option<Duration> {
    (milliseconds != u32::MAX).then(|| Duration::from_millis(milliseconds.into()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtWaitOnEvent(event: *mut Event, milliseconds: u32) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    // SAFETY: made by `hsaKmtCreateEvent`.
    match unsafe { event.as_mut() } {
        Some(event) => machine.events.wait(&mut [event], true, time(milliseconds)),
        None => Status::InvalidHandle,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtWaitOnMultipleEvents(
    events: *const *mut Event,
    count: u32,
    all: bool,
    milliseconds: u32,
) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    if events.is_null() {
        return Status::InvalidHandle;
    }
    // SAFETY: an array of the runtime with `count` events made by `hsaKmtCreateEvent`.
    let events = unsafe { std::slice::from_raw_parts(events, count as usize) };
    // SAFETY: as above.
    let mut events: Vec<&mut Event> =
        events.iter().filter_map(|event| unsafe { event.as_mut() }).collect();
    machine.events.wait(&mut events, all, time(milliseconds))
}

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
    machine().map_or(Status::Error, |machine| machine.remove_queue(id))
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

#[unsafe(no_mangle)]
extern "C" fn hsaKmtSetTrapHandler(_: u32, _: u64, _: u64, _: u64, _: u64) -> Status {
    // Traps end the dispatch, and are reported as the runtime's handler would.
    Status::Success
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtGetXNACKMode(place: *mut i32) -> Status {
    // SAFETY: the runtime passes null or a `place` of its own for a value of this type.
    unsafe { give(place, 0) }
}

#[unsafe(no_mangle)]
extern "C" fn hsaKmtSetXNACKMode(enable: i32) -> Status {
    if enable == 0 { Status::Success } else { Status::NotSupported }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn hsaKmtSVMSetAttr(
    address: u64,
    bytes: u64,
    count: u32,
    attributes: *const SvmAttribute,
) -> Status {
    let Some(machine) = machine() else { return Status::Error };
    let Some(range) = pages(address, bytes).filter(|_| !attributes.is_null()) else {
        return Status::InvalidParameter;
    };
    // SAFETY: an array of the runtime with `count` attributes.
    let attributes = unsafe { std::slice::from_raw_parts(attributes, count as usize) };
    for attribute in attributes {
        let (kind, node) = (attribute.kind, attribute.value);
        let access = match kind {
            SvmAttribute::ACCESS | SvmAttribute::ACCESS_IN_PLACE => true,
            SvmAttribute::NO_ACCESS => false,
            // Where pages had better be, and how they are kept coherent, is all the same here.
            _ => continue,
        };
        if machine.is_gpu(node) {
            machine.with_memory(|memory| memory.shared.set(node, range.clone(), access));
        }
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
    let Some(range) = pages(address, bytes).filter(|_| !attributes.is_null()) else {
        return Status::InvalidParameter;
    };
    // SAFETY: an array of the runtime with `count` attributes.
    let attributes = unsafe { std::slice::from_raw_parts_mut(attributes, count as usize) };
    for attribute in attributes {
        let SvmAttribute { kind, value } = *attribute;
        *attribute = match kind {
            SvmAttribute::ACCESS | SvmAttribute::ACCESS_IN_PLACE | SvmAttribute::NO_ACCESS => {
                let may = !machine.is_gpu(value)
                    || machine.with_memory(|memory| memory.shared.is_set(value, range.clone()));
                let kind =
                    if may { SvmAttribute::ACCESS_IN_PLACE } else { SvmAttribute::NO_ACCESS };
                SvmAttribute { kind, value }
            }
            // The host's memory, coherent, in pages of 2 MiB: what `HSA_SVM_ATTRIBUTE` says where
            // nothing was asked for.
            SvmAttribute::PREFERRED_LOCATION | SvmAttribute::PREFETCH_LOCATION => {
                SvmAttribute { kind, value: u32::MAX }
            }
            SvmAttribute::GRANULARITY => SvmAttribute { kind, value: 9 },
            _ => SvmAttribute { kind, value: 0 },
        };
    }
    Status::Success
}

/// The pages around a range of the program's memory.
fn pages(address: u64, bytes: u64) -> Option<std::ops::Range<u64>> {
    const PAGE: u64 = 4096;
    let end = address.checked_add(bytes)?.checked_next_multiple_of(PAGE)?;
    (address != 0 && bytes != 0).then_some(address & !(PAGE - 1)..end)
}

/// Functions of what an embedded GPU does not have: graphics and other processes.
macro_rules! not_supported {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> Status {
                Status::NotSupported
            }
        )*
    };
}

not_supported! {
    hsaKmtRegisterGraphicsHandleToNodes
    hsaKmtRegisterSharedHandle
    hsaKmtRegisterSharedHandleToNodes
    hsaKmtShareMemory
}
