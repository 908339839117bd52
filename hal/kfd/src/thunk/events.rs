//! Events.

use super::give;
use crate::abi::*;
use crate::events::Waited;
use crate::machine::Machine;
use crate::opened::machine;
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
    let Some(id) = machine.events.create(wanted.kind, is_manual, is_signaled) else {
        return Status::NoMemory;
    };
    let fault = MemoryAccessFault { node: 0, address: 0, failure: 0, flags: 0 };
    let mailbox = mailboxes + 8 * u64::from(id);
    let event = Event { id, kind: wanted.kind, fault, hardware: [0, mailbox], hardware_word: id };
    // SAFETY: the runtime passes null or a `place` of its own for a value of this type.
    // It gives the event back with `hsaKmtDestroyEvent`.
    unsafe { give(place, Box::into_raw(Box::new(event))) }
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
        Some(event) if machine.events.set(event.id) => Status::Success,
        _ => Status::InvalidHandle,
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
        Some(event) => wait(machine, &mut [event], true, milliseconds),
        None => Status::InvalidHandle,
    }
}

/// Waits for events, and writes to each what is known of a fault.
fn wait(machine: &Machine, events: &mut [&mut Event], all: bool, milliseconds: u32) -> Status {
    let mut waited: Vec<Waited> = events.iter().map(|event| Waited::new(event.id, 0)).collect();
    if !machine.events.wait(&mut waited, all, time(milliseconds)) {
        return Status::WaitTimeout;
    }
    for (event, waited) in events.iter_mut().zip(waited) {
        event.fault = waited.fault.unwrap_or(event.fault);
    }
    Status::Success
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
    wait(machine, &mut events, all, milliseconds)
}
