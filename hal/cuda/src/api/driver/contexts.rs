//! Contexts.

use super::{code, devices};
use crate::api::{Current, Out, api, driver, primary_context, with_contexts};
use crate::device;
use crate::driver::Context;
use crate::handles::lock;
use crate::memory::Kind;
use crate::status::Status;
use std::sync::atomic::Ordering;

/// Limits of the API that the simulator has: sizes of the stack, of the output buffer and of the heap, in bytes.
pub(in crate::api) fn limit_of(limit: i32) -> Result<usize, Status> {
    match limit {
        0 => Ok(1024),
        1 => Ok(1 << 20),
        2 => Ok(8 << 20),
        3..=7 => Ok(0),
        _ => Err(Status::INVALID_VALUE),
    }
}

fn create(context: Out<usize>, flags: u32, device: i32) -> Result<(), Status> {
    devices::find(device)?.check()?;
    let handle = driver()?.contexts.add(Context { device: device as usize, flags });
    with_contexts(|contexts| contexts.push(handle));
    context.put(handle)
}

api! { convert code;
    cuDevicePrimaryCtxRetain(context: Out<usize>, device: i32) {
        let found = devices::find(device)?;
        found.check()?;
        let handle = primary_context(driver()?, device as usize);
        lock(&found.primary).1 += 1;
        context.put(handle)
    }

    cuDevicePrimaryCtxRelease_v2 | cuDevicePrimaryCtxRelease (device: i32) {
        let mut primary = lock(&devices::find(device)?.primary);
        primary.1 = primary.1.checked_sub(1).ok_or(Status::INVALID_CONTEXT)?;
        Ok(())
    }

    cuDevicePrimaryCtxReset_v2 | cuDevicePrimaryCtxReset (device: i32) {
        let found = devices::find(device)?;
        let driver = driver()?;
        let _ = driver.synchronize(device as usize);
        let primary = lock(&found.primary).0;
        free_memory(primary.unwrap_or(0));
        Ok(())
    }

    cuDevicePrimaryCtxSetFlags_v2 | cuDevicePrimaryCtxSetFlags (device: i32, flags: u32) {
        devices::find(device)?.primary_flags.store(flags, Ordering::Relaxed);
        Ok(())
    }

    cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, is_active: Out<i32>) {
        let found = devices::find(device)?;
        flags.put(found.primary_flags.load(Ordering::Relaxed))?;
        is_active.put(i32::from(lock(&found.primary).0.is_some()))
    }

    cuCtxCreate_v2 | cuCtxCreate (context: Out<usize>, flags: u32, device: i32) {
        create(context, flags, device)
    }

    cuCtxCreate_v3(context: Out<usize>, _affinity: usize, _count: i32, flags: u32, device: i32) {
        create(context, flags, device)
    }

    cuCtxCreate_v4(context: Out<usize>, _parameters: usize, flags: u32, device: i32) {
        create(context, flags, device)
    }

    cuCtxDestroy_v2 | cuCtxDestroy (context: usize) {
        let driver = driver()?;
        let found = driver.contexts.get(context).ok_or(Status::INVALID_CONTEXT)?;
        let _ = driver.synchronize(found.device);
        driver.contexts.remove(context);
        with_contexts(|contexts| {
            if contexts.last() == Some(&context) {
                contexts.pop();
            }
        });
        for (handle, module) in driver.modules.all() {
            if module.context == context {
                driver.unload(handle);
            }
        }
        free_memory(context);
        Ok(())
    }

    cuCtxPushCurrent_v2 | cuCtxPushCurrent (context: usize) {
        driver()?.contexts.get(context).ok_or(Status::INVALID_CONTEXT)?;
        with_contexts(|contexts| contexts.push(context));
        Ok(())
    }

    cuCtxPopCurrent_v2 | cuCtxPopCurrent (context: Out<usize>) {
        driver()?;
        let popped = with_contexts(Vec::pop).ok_or(Status::INVALID_CONTEXT)?;
        context.put_if_wanted(popped);
        Ok(())
    }

    cuCtxSetCurrent(context: usize) {
        if context != 0 {
            driver()?.contexts.get(context).ok_or(Status::INVALID_CONTEXT)?;
        }
        with_contexts(|contexts| {
            contexts.pop();
            if context != 0 {
                contexts.push(context);
            }
        });
        Ok(())
    }

    cuCtxGetCurrent(context: Out<usize>) {
        driver()?;
        context.put(with_contexts(|contexts| contexts.last().copied()).unwrap_or(0))
    }

    cuCtxGetDevice(device: Out<i32>) {
        device.put(Current::any()?.context.device as i32)
    }

    cuCtxGetFlags(flags: Out<u32>) {
        flags.put(Current::any()?.context.flags)
    }

    cuCtxSetFlags(_flags: u32) {
        Current::any().map(|_| ())
    }

    cuCtxGetId(context: usize, id: Out<u64>) {
        let handle = if context == 0 { Current::any()?.handle } else { context };
        id.put(handle as u64)
    }

    cuCtxSynchronize() {
        let current = Current::any()?;
        current.driver.synchronize(current.context.device)
    }

    cuCtxSetLimit(limit: i32, _value: usize) {
        Current::get()?;
        limit_of(limit).map(|_| ())
    }

    cuCtxGetLimit(value: Out<usize>, limit: i32) {
        Current::any()?;
        value.put(limit_of(limit)?)
    }

    cuCtxGetCacheConfig | cuCtxGetSharedMemConfig (config: Out<i32>) {
        Current::any()?;
        config.put(0)
    }

    cuCtxSetCacheConfig | cuCtxSetSharedMemConfig (_config: i32) {
        Current::get().map(|_| ())
    }

    cuCtxGetApiVersion(_context: usize, version: Out<u32>) {
        version.put(device::VERSION as u32)
    }

    cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        Current::any()?;
        least.put_if_wanted(0);
        greatest.put_if_wanted(-5);
        Ok(())
    }

    cuCtxResetPersistingL2Cache() {
        Current::get().map(|_| ())
    }

    cuCtxEnablePeerAccess(_peer: usize, _flags: u32) {
        Err(Status::NOT_SUPPORTED)
    }

    cuCtxDisablePeerAccess(_peer: usize) {
        Err(Status::PEER_ACCESS_NOT_ENABLED)
    }
}

/// Frees the memory of a context.
pub(in crate::api) fn free_memory(context: usize) {
    let Ok(driver) = driver() else { return };
    for allocation in driver.allocations.all().into_iter().filter(|found| found.context == context)
    {
        match allocation.kind {
            Kind::Registered(_) => {
                driver.allocations.remove(allocation.start, |kind| kind == allocation.kind);
                driver.unmap_host(allocation.start);
            }
            _ => {
                driver.free(allocation.start);
            }
        }
    }
}
