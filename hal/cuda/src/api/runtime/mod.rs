//! The runtime API, on the functions of the driver API.

mod devices;
mod errors;
mod graphs;
mod kernels;
mod memory;
mod registry;
mod streams;

use super::{Current, primary_context, with_contexts};
use crate::driver::open;
use crate::status::Status;
use std::cell::Cell;

thread_local! {
    /// The last error of the thread.
    static LAST: Cell<Option<Status>> = const { Cell::new(None) };
    /// The device of the thread.
    static DEVICE: Cell<usize> = const { Cell::new(0) };
}

/// Executes a call and returns its code; an error becomes the last error of the thread.
fn code(body: impl FnOnce() -> Result<(), Status>) -> i32 {
    match body() {
        Ok(()) => 0,
        Err(Status::NOT_READY) => Status::NOT_READY.0,
        Err(status) => {
            if LAST.get().is_none_or(|last| !last.is_sticky()) {
                LAST.set(Some(status));
            }
            status.0
        }
    }
}

/// The context of the thread. Without one, the primary context of the thread's device becomes current.
///
/// # Errors
/// [`Status::NO_DEVICE`], and the error of a fault.
fn ready() -> Result<Current, Status> {
    let driver = open()?;
    let has_context = with_contexts(|contexts| {
        contexts.last().is_some_and(|last| driver.contexts.get(*last).is_some())
    });
    if !has_context {
        let primary = primary_context(driver, DEVICE.get());
        with_contexts(|contexts| contexts.push(primary));
    }
    Current::get()
}

/// Makes the primary context of a device current.
///
/// # Errors
/// [`Status::INVALID_DEVICE`].
fn set_device(number: i32) -> Result<(), Status> {
    let driver = open()?;
    let device = usize::try_from(number).ok().filter(|device| *device < driver.devices.len());
    let device = device.ok_or(Status::INVALID_DEVICE)?;
    DEVICE.set(device);
    let primary = primary_context(driver, device);
    with_contexts(|contexts| {
        contexts.pop();
        contexts.push(primary);
    });
    driver.devices[device].check()
}
