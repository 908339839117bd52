//! Events.

use super::{give, machine};
use crate::abi::*;
use std::time::Duration;

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
