//! The functions of libhsakmt that the runtime imports. Each does what `hsakmt.h` says of it, as far
//! as an embedded GPU has a part in it.

#![allow(clippy::missing_safety_doc, reason = "the runtime calls them by the rules of hsakmt.h")]

mod events;
mod memory;
mod queues;

use crate::abi::*;
use crate::clock::clock;
use crate::opened::machine;
use std::ffi::c_void;

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
