//! Initialization, devices and error messages.

use super::code;
use crate::api::{Out, Text, api, driver, put_text};
use crate::device;
use crate::driver::{Device, open};
use crate::status::Status;
use std::ffi::c_char;

/// The device with a number.
///
/// # Errors
/// [`Status::INVALID_DEVICE`], [`Status::NOT_INITIALIZED`].
pub(super) fn find(number: i32) -> Result<&'static Device, Status> {
    let device = usize::try_from(number).ok().and_then(|number| driver().ok()?.devices.get(number));
    driver()?;
    device.ok_or(Status::INVALID_DEVICE)
}

/// The address of a device on the PCI bus.
fn bus_id(number: i32) -> String {
    format!("0000:{:02x}:00.0", number + 1)
}

api! { convert code;
    cuInit(flags: u32) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        open().map(|_| ())
    }

    cuDriverGetVersion(version: Out<i32>) {
        version.put(device::VERSION)
    }

    cuGetErrorName(error: i32, name: Out<*const c_char>) {
        let found = Status(error).driver_name();
        name.put(found.map_or(std::ptr::null(), |name| name.as_ptr().cast()))?;
        found.map(|_| ()).ok_or(Status::INVALID_VALUE)
    }

    cuGetErrorString(error: i32, text: Out<*const c_char>) {
        let found = Status(error).description();
        text.put(found.map_or(std::ptr::null(), |text| text.as_ptr().cast()))?;
        found.map(|_| ()).ok_or(Status::INVALID_VALUE)
    }

    cuDeviceGetCount(count: Out<i32>) {
        count.put(driver()?.devices.len() as i32)
    }

    cuDeviceGet(device: Out<i32>, ordinal: i32) {
        find(ordinal)?;
        device.put(ordinal)
    }

    cuDeviceGetName(name: Out<u8>, bytes: i32, device: i32) {
        put_text(name, bytes, &device::name(find(device)?))
    }

    cuDeviceGetUuid | cuDeviceGetUuid_v2 (uuid: Out<[u8; 16]>, device: i32) {
        find(device)?;
        let mut bytes = *b"flipwave-gpu-000";
        bytes[15] += device as u8;
        uuid.put(bytes)
    }

    cuDeviceTotalMem_v2 | cuDeviceTotalMem (bytes: Out<usize>, device: i32) {
        find(device)?;
        bytes.put(device::memory_bytes() as usize)
    }

    cuDeviceGetAttribute(value: Out<i32>, attribute: i32, device: i32) {
        let found = device::attribute(find(device)?, attribute);
        value.put(found.ok_or(Status::INVALID_VALUE)?)
    }

    cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, device: i32) {
        let capability = find(device)?.capability();
        major.put(capability.0 as i32)?;
        minor.put(capability.1 as i32)
    }

    cuDeviceGetPCIBusId(id: Out<u8>, bytes: i32, device: i32) {
        find(device)?;
        put_text(id, bytes, &bus_id(device))
    }

    cuDeviceGetByPCIBusId(device: Out<i32>, id: Text) {
        let id = id.get()?;
        let count = driver()?.devices.len() as i32;
        let found = (0..count).find(|number| bus_id(*number).ends_with(&id));
        device.put(found.ok_or(Status::INVALID_DEVICE)?)
    }

    cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) {
        find(device)?;
        find(peer)?;
        can.put(0)
    }

    cuDeviceGetP2PAttribute(value: Out<i32>, _attribute: i32, device: i32, peer: i32) {
        find(device)?;
        find(peer)?;
        value.put(0)
    }

    cuDeviceGetDefaultMemPool | cuDeviceGetMemPool (pool: Out<usize>, device: i32) {
        find(device)?;
        // The only pool of each device.
        pool.put(16 * (device as usize + 1))
    }

    cuDeviceSetMemPool(device: i32, _pool: usize) {
        find(device).map(|_| ())
    }
}
