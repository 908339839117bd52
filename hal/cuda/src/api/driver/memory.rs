//! Allocation of memory, and properties of pointers.

use super::{code, devices};
use crate::api::{Current, In, Out, api};
use crate::device;
use crate::memory::{Allocation, Kind};
use crate::queue::Work;
use crate::status::Status;

/// Alignment of rows in bytes.
const PITCH: usize = 512;

/// Allocates device memory in the current context.
pub(in crate::api) fn allocate(bytes: usize) -> Result<u64, Status> {
    let current = Current::get()?;
    if bytes == 0 {
        return Err(Status::INVALID_VALUE);
    }
    current.driver.allocate(current.handle, current.context.device, bytes as u64)
}

/// Allocates rows; returns the address and the distance of rows in bytes.
pub(in crate::api) fn allocate_rows(width: usize, height: usize) -> Result<(u64, usize), Status> {
    let pitch = width.checked_next_multiple_of(PITCH).ok_or(Status::OUT_OF_MEMORY)?;
    let bytes = pitch.checked_mul(height).ok_or(Status::OUT_OF_MEMORY)?;
    Ok((allocate(bytes)?, pitch))
}

/// Frees device or managed memory after all work.
pub(in crate::api) fn free(pointer: u64) -> Result<(), Status> {
    if pointer == 0 {
        return Ok(());
    }
    let current = Current::any()?;
    current.driver.synchronize(current.context.device)?;
    if current.driver.free(pointer) { Ok(()) } else { Err(Status::INVALID_VALUE) }
}

/// Allocates host memory that kernels can access.
pub(in crate::api) fn allocate_host(bytes: usize, kind: Kind) -> Result<u64, Status> {
    let current = Current::get()?;
    if bytes == 0 {
        return Err(Status::INVALID_VALUE);
    }
    let driver = current.driver;
    let added =
        driver.allocations.add_host(current.context.device, current.handle, bytes as u64, kind)?;
    driver.map_host(&added);
    Ok(added.start)
}

/// Frees host memory that the driver has allocated.
pub(in crate::api) fn free_host(pointer: u64) -> Result<(), Status> {
    let current = Current::any()?;
    if current.driver.free_host(pointer) { Ok(()) } else { Err(Status::INVALID_VALUE) }
}

/// Lets kernels access memory of the application.
pub(in crate::api) fn register(start: u64, bytes: usize, flags: u32) -> Result<(), Status> {
    let current = Current::get()?;
    if start == 0 || bytes == 0 {
        return Err(Status::INVALID_VALUE);
    }
    let (device, context, kind) = (current.context.device, current.handle, Kind::Registered(flags));
    let allocation = Allocation { start, bytes: bytes as u64, kind, device, context };
    current.driver.allocations.add_registered(allocation)?;
    current.driver.map_host(&allocation);
    Ok(())
}

/// Takes memory of the application away from kernels.
pub(in crate::api) fn unregister(start: u64) -> Result<(), Status> {
    let current = Current::any()?;
    let is_registered = |kind| matches!(kind, Kind::Registered(_));
    let removed = current.driver.allocations.remove(start, is_registered);
    removed.ok_or(Status::HOST_MEMORY_NOT_REGISTERED)?;
    let _ = current.driver.synchronize(current.context.device);
    current.driver.unmap_host(start);
    Ok(())
}

/// The device address of host memory.
pub(in crate::api) fn device_pointer(host: u64) -> Result<u64, Status> {
    let current = Current::any()?;
    if current.driver.is_pinned(host) { Ok(host) } else { Err(Status::INVALID_VALUE) }
}

/// Free and total device memory in bytes.
pub(in crate::api) fn sizes() -> Result<(usize, usize), Status> {
    let current = Current::get()?;
    let total = device::memory_bytes();
    let used = current.driver.allocations.used(current.context.device);
    Ok(((total - used.min(total)) as usize, total as usize))
}

/// Allocates memory in the order of a stream.
pub(in crate::api) fn allocate_in_stream(bytes: usize, stream: usize) -> Result<u64, Status> {
    Current::get()?.stream(stream)?;
    allocate(bytes)
}

/// Frees memory in the order of a stream.
pub(in crate::api) fn free_in_stream(pointer: u64, stream: usize) -> Result<(), Status> {
    let current = Current::get()?;
    let stream = current.stream(stream)?;
    if pointer != 0 {
        let found = current.driver.allocations.around(pointer);
        let is_start = |found: &Allocation| found.kind == Kind::Device && found.start == pointer;
        found.filter(is_start).ok_or(Status::INVALID_VALUE)?;
        current.driver.submit(&stream, Work::Free(pointer));
    }
    Ok(())
}

/// The allocation that contains an address.
pub(in crate::api) fn around(pointer: u64) -> Result<Allocation, Status> {
    let current = Current::any()?;
    current.driver.allocations.around(pointer).ok_or(Status::INVALID_VALUE)
}

/// Stores an attribute of a pointer (`CUpointer_attribute`).
fn attribute(value: Out<u64>, attribute: i32, pointer: u64) -> Result<(), Status> {
    let found = around(pointer)?;
    let is_host = found.kind != Kind::Device;
    let narrow = Out::<u32>(value.0.cast());
    match attribute {
        1 => value.put(found.context as u64),
        2 => narrow.put(if matches!(found.kind, Kind::Device | Kind::Managed) { 2 } else { 1 }),
        3 => value.put(pointer),
        4 if is_host => value.put(pointer),
        4 => Err(Status::INVALID_VALUE),
        6 => narrow.put(1),
        7 => value.put(found.start),
        8 => Out::<u8>(value.0.cast()).put(u8::from(found.kind == Kind::Managed)),
        9 => narrow.put(found.device as u32),
        11 => value.put(found.start),
        12 => value.put(found.bytes),
        13 => Out::<u8>(value.0.cast()).put(1),
        10 | 14 | 15 | 16 | 17 => narrow.put(0),
        _ => Err(Status::INVALID_VALUE),
    }
}

api! { convert code;
    cuMemAlloc_v2 | cuMemAlloc (pointer: Out<u64>, bytes: usize) {
        pointer.put(allocate(bytes)?)
    }

    cuMemAllocPitch_v2 | cuMemAllocPitch (
        pointer: Out<u64>, pitch: Out<usize>, width: usize, height: usize, _element: u32,
    ) {
        let (address, distance) = allocate_rows(width, height)?;
        pitch.put(distance)?;
        pointer.put(address)
    }

    cuMemFree_v2 | cuMemFree (pointer: u64) {
        free(pointer)
    }

    cuMemAllocAsync | cuMemAllocAsync_ptsz (pointer: Out<u64>, bytes: usize, stream: usize) {
        pointer.put(allocate_in_stream(bytes, stream)?)
    }

    cuMemAllocFromPoolAsync | cuMemAllocFromPoolAsync_ptsz (
        pointer: Out<u64>, bytes: usize, _pool: usize, stream: usize,
    ) {
        pointer.put(allocate_in_stream(bytes, stream)?)
    }

    cuMemFreeAsync | cuMemFreeAsync_ptsz (pointer: u64, stream: usize) {
        free_in_stream(pointer, stream)
    }

    cuMemPoolSetAttribute | cuMemPoolGetAttribute (_pool: usize, attribute: i32, value: Out<u64>) {
        match attribute {
            1..=3 => Out::<u32>(value.0.cast()).put(1),
            4..=8 => value.put(0),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    cuMemPoolTrimTo(_pool: usize, _bytes: usize) {
        Current::get().map(|_| ())
    }

    cuMemGetInfo_v2 | cuMemGetInfo (free: Out<usize>, total: Out<usize>) {
        let sizes = sizes()?;
        free.put_if_wanted(sizes.0);
        total.put_if_wanted(sizes.1);
        Ok(())
    }

    cuMemGetAddressRange_v2 | cuMemGetAddressRange (
        start: Out<u64>, bytes: Out<usize>, pointer: u64,
    ) {
        let found = around(pointer).map_err(|_| Status::NOT_FOUND)?;
        start.put_if_wanted(found.start);
        bytes.put_if_wanted(found.bytes as usize);
        Ok(())
    }

    cuMemAllocManaged(pointer: Out<u64>, bytes: usize, flags: u32) {
        if !matches!(flags, 1 | 2) {
            return Err(Status::INVALID_VALUE);
        }
        pointer.put(allocate_host(bytes, Kind::Managed)?)
    }

    cuMemHostAlloc(pointer: Out<u64>, bytes: usize, flags: u32) {
        pointer.put(allocate_host(bytes, Kind::Host(flags))?)
    }

    cuMemAllocHost_v2 | cuMemAllocHost (pointer: Out<u64>, bytes: usize) {
        pointer.put(allocate_host(bytes, Kind::Host(0))?)
    }

    cuMemFreeHost(pointer: u64) {
        free_host(pointer)
    }

    cuMemHostGetDevicePointer_v2 | cuMemHostGetDevicePointer (
        pointer: Out<u64>, host: u64, _flags: u32,
    ) {
        pointer.put(device_pointer(host)?)
    }

    cuMemHostGetFlags(flags: Out<u32>, host: u64) {
        match around(host)?.kind {
            Kind::Host(found) | Kind::Registered(found) => flags.put(found),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    cuMemHostRegister_v2 | cuMemHostRegister (pointer: u64, bytes: usize, flags: u32) {
        register(pointer, bytes, flags)
    }

    cuMemHostUnregister(pointer: u64) {
        unregister(pointer)
    }

    cuPointerGetAttribute(value: Out<u64>, number: i32, pointer: u64) {
        attribute(value, number, pointer)
    }

    cuPointerGetAttributes(count: u32, numbers: In<i32>, values: In<usize>, pointer: u64) {
        for number in 0..count as usize {
            let value = Out(values.get_at(number)? as *mut u64);
            let stored = attribute(value, numbers.get_at(number)?, pointer);
            if stored.is_err() {
                // Pointers that the driver does not know have no attributes.
                Out::<u32>(value.0.cast()).put(0)?;
            }
        }
        Ok(())
    }

    cuPointerSetAttribute(_value: usize, _number: i32, pointer: u64) {
        around(pointer).map(|_| ())
    }

    cuMemAdvise(pointer: u64, _bytes: usize, _advice: i32, _device: i32) {
        around(pointer).map(|_| ())
    }

    cuMemPrefetchAsync | cuMemPrefetchAsync_ptsz (pointer: u64, _bytes: usize, _device: i32, stream: usize) {
        Current::get()?.stream(stream)?;
        around(pointer).map(|_| ())
    }

    cuStreamAttachMemAsync | cuStreamAttachMemAsync_ptsz (
        stream: usize, _pointer: u64, _bytes: usize, _flags: u32,
    ) {
        Current::get()?.stream(stream).map(|_| ())
    }

    cuMemcpyPeer | cuMemcpyPeer_ptds (to: u64, _to_context: usize, from: u64, _from_context: usize, bytes: usize) {
        super::copies::copy_now(to, from, bytes)
    }

    cuMemcpyPeerAsync | cuMemcpyPeerAsync_ptsz (
        to: u64, _to_context: usize, from: u64, _from_context: usize, bytes: usize, stream: usize,
    ) {
        super::copies::copy_in_stream(to, from, bytes, stream)
    }

    cuIpcGetMemHandle(_handle: usize, _pointer: u64) {
        devices::find(0)?;
        Err(Status::NOT_SUPPORTED)
    }
}
