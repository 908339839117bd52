//! Devices.

use super::{DEVICE, code, ready, set_device};
use crate::api::driver::contexts::{free_memory, limit_of};
use crate::api::{In, Out, Text, api, primary_context, put_text};
use crate::device;
use crate::driver::{Device, open, report};
use crate::status::Status;

/// Size of the beginning of `cudaDeviceProp` that versions 11 and 12 share, in bytes.
const SHARED_BYTES: usize = 728;
/// Size of the structure in version 12 in bytes.
const ALL_BYTES: usize = 1032;

/// The device with a number.
fn find(number: i32) -> Result<&'static Device, Status> {
    let devices = &open()?.devices;
    usize::try_from(number)
        .ok()
        .and_then(|number| devices.get(number))
        .ok_or(Status::INVALID_DEVICE)
}

/// The beginning of `cudaDeviceProp`, whose fields versions 11 and 12 share.
fn properties(device: &Device) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SHARED_BYTES);
    let attribute = |number: i32| device::attribute(device, number).unwrap_or(0);
    let mut name = device::name(device).into_bytes();
    name.resize(256, 0);
    bytes.extend(name);
    // UUID, LUID and its mask, with padding.
    bytes.extend([0; 32]);
    let wide = |bytes: &mut Vec<u8>, value: u64| bytes.extend(value.to_le_bytes());
    let ints = |bytes: &mut Vec<u8>, numbers: &[i32]| {
        numbers.iter().for_each(|number| bytes.extend(attribute(*number).to_le_bytes()));
    };
    wide(&mut bytes, device::memory_bytes());
    wide(&mut bytes, device::DEFAULT_SHARED_BYTES);
    ints(&mut bytes, &[12, 10]);
    wide(&mut bytes, attribute(11) as u64);
    ints(&mut bytes, &[1, 2, 3, 4, 5, 6, 7, 13]);
    wide(&mut bytes, attribute(9) as u64);
    ints(&mut bytes, &[75, 76]);
    wide(&mut bytes, attribute(14) as u64);
    wide(&mut bytes, attribute(51) as u64);
    ints(&mut bytes, &[15, 16, 17, 18, 19, 20]);
    // 40 limits of textures and surfaces, and their alignment.
    bytes.extend([0; 160]);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    wide(&mut bytes, 512);
    ints(&mut bytes, &[31, 32, 33, 34, 50, 35, 40, 41, 36, 37, 38, 108, 39, 78, 79, 80]);
    wide(&mut bytes, attribute(81) as u64);
    ints(&mut bytes, &[82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 95, 96]);
    wide(&mut bytes, attribute(97) as u64);
    ints(&mut bytes, &[100, 101, 106, 109]);
    wide(&mut bytes, attribute(111) as u64);
    bytes.resize(SHARED_BYTES, 0);
    bytes
}

/// Returns `true` if the program uses version 13 of the runtime.
fn is_version_13() -> bool {
    // SAFETY: finds a library that is already loaded, under its name.
    let found =
        unsafe { libc::dlopen(c"libcudart.so.13".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    !found.is_null()
}

fn put(result: Out<u8>, bytes: &[u8], size: usize) -> Result<(), Status> {
    result.get().ok_or(Status::INVALID_VALUE)?;
    (0..size).for_each(|at| result.put_at(at, bytes.get(at).copied().unwrap_or(0)));
    Ok(())
}

api! { convert code;
    cudaGetDeviceCount(count: Out<i32>) {
        count.put(open()?.devices.len() as i32)
    }

    cudaSetDevice(device: i32) {
        set_device(device)
    }

    cudaInitDevice(device: i32, _flags: u32, _selection: u32) {
        find(device).map(|_| ())
    }

    cudaGetDevice(device: Out<i32>) {
        device.put(DEVICE.get() as i32)
    }

    cudaChooseDevice(device: Out<i32>, _properties: usize) {
        open()?;
        device.put(0)
    }

    cudaDeviceSynchronize | cudaThreadSynchronize () {
        let current = ready()?;
        current.driver.synchronize(current.context.device)
    }

    cudaDeviceReset | cudaThreadExit () {
        let driver = open()?;
        let done = driver.synchronize(DEVICE.get());
        free_memory(primary_context(driver, DEVICE.get()));
        done
    }

    cudaDeviceGetAttribute(value: Out<i32>, attribute: i32, device: i32) {
        value.put(device::attribute(find(device)?, attribute).ok_or(Status::INVALID_VALUE)?)
    }

    cudaGetDeviceProperties_v2(result: Out<u8>, device: i32) {
        put(result, &properties(find(device)?), ALL_BYTES)
    }

    cudaGetDeviceProperties(result: Out<u8>, device: i32) {
        if is_version_13() {
            report(&"cudaGetDeviceProperties of CUDA 13 is not supported; use cudaDeviceGetAttribute");
            return Err(Status::NOT_SUPPORTED);
        }
        put(result, &properties(find(device)?), SHARED_BYTES)
    }

    cudaDeviceGetPCIBusId(id: Out<u8>, bytes: i32, device: i32) {
        find(device)?;
        put_text(id, bytes, &format!("0000:{:02x}:00.0", device + 1))
    }

    cudaDeviceGetByPCIBusId(device: Out<i32>, id: Text) {
        let id = id.get()?;
        let count = open()?.devices.len() as i32;
        let found = (0..count).find(|number| format!("0000:{:02x}:00.0", number + 1).ends_with(&id));
        device.put(found.ok_or(Status::INVALID_DEVICE)?)
    }

    cudaSetDeviceFlags | cudaDeviceSetCacheConfig | cudaDeviceSetSharedMemConfig (_flags: u32) {
        open().map(|_| ())
    }

    cudaGetDeviceFlags | cudaDeviceGetCacheConfig | cudaDeviceGetSharedMemConfig (flags: Out<u32>) {
        flags.put(0)
    }

    cudaDeviceSetLimit(limit: i32, _value: usize) {
        limit_of(limit).map(|_| ())
    }

    cudaDeviceGetLimit(value: Out<usize>, limit: i32) {
        value.put(limit_of(limit)?)
    }

    cudaDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) {
        find(device)?;
        find(peer)?;
        can.put(0)
    }

    cudaDeviceEnablePeerAccess(_peer: i32, _flags: u32) {
        Err(Status::NOT_SUPPORTED)
    }

    cudaDeviceGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        least.put_if_wanted(0);
        greatest.put_if_wanted(-5);
        Ok(())
    }

    cudaSetValidDevices(_devices: In<i32>, _count: i32) {
        open().map(|_| ())
    }

    cudaDeviceGetDefaultMemPool | cudaDeviceGetMemPool (pool: Out<usize>, device: i32) {
        find(device)?;
        pool.put(16 * (device as usize + 1))
    }

    cudaProfilerStart | cudaProfilerStop () {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets of some fields in the structure of CUDA 12, computed from its declaration by a C compiler.
    #[test]
    fn properties_have_the_layout_of_the_documentation() {
        let device = find(0).expect("a device");
        let bytes = properties(device);
        let at =
            |offset: usize| i32::from_le_bytes(*bytes[offset..].first_chunk().expect("a number"));
        assert_eq!(bytes.len(), SHARED_BYTES);
        // warpSize, major, multiProcessorCount, l2CacheSize, cooperativeLaunch, maxBlocksPerMultiProcessor
        let numbers = [308, 360, 388, 616, 688, 712].map(at);
        assert_eq!(numbers, [32, 9, device::MULTIPROCESSORS, 50 << 20, 1, 32]);
    }
}
