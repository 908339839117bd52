//! Events.

use super::abi::*;
use super::error::Errno;
use super::gpu::GpuNode;
use super::process::Process;
use super::program::with_array;
use crate::events::{Inaccessible, Told, Waited};
use std::cell::RefCell;
use std::time::Duration;

pub fn create(process: &Process, own: &mut CreateEvent) -> Result<(), Errno> {
    // The program brings the page in which GPUs write which event they signal: a handle.
    if own.event_page_offset != 0 {
        process.buffers.get(own.event_page_offset)?;
    }
    let is_manual = own.auto_reset == 0;
    let id = process.machine.events.create(own.event_type, is_manual, false);
    own.event_id = id.ok_or(Errno::NO_MEMORY)?;
    (own.event_slot_index, own.event_trigger_data) = (own.event_id, own.event_id);
    // Anything but 0 says that events have places in the page.
    own.event_page_offset = 1 << 32;
    Ok(())
}

pub fn destroy(process: &Process, own: &mut DestroyEvent) -> Result<(), Errno> {
    process.machine.events.destroy(own.event_id).then_some(()).ok_or(Errno::INVALID)
}

pub fn set(process: &Process, own: &mut SetEvent) -> Result<(), Errno> {
    process.machine.events.set(own.event_id).then_some(()).ok_or(Errno::INVALID)
}

pub fn reset(process: &Process, own: &mut ResetEvent) -> Result<(), Errno> {
    process.machine.events.reset(own.event_id).then_some(()).ok_or(Errno::INVALID)
}

thread_local! {
    static TOLD: RefCell<Told> = RefCell::default();
}

const COMPLETE: u32 = 0;
const TIMEOUT: u32 = 1;

pub fn wait(process: &Process, own: &mut WaitEvents) -> Result<(), Errno> {
    let time = (own.timeout != u32::MAX).then(|| Duration::from_millis(own.timeout.into()));
    let mut in_time = false;
    // SAFETY: the program has as many as it says.
    unsafe {
        with_array(own.events_ptr, own.num_events, |places: &mut [EventData]| {
            let waited = |place: &EventData| Waited::new(place.event_id, age(place));
            let mut all: Vec<Waited> = places.iter().map(waited).collect();
            if !process.machine.events.are_known(&all) {
                return Err(Errno::INVALID);
            }
            process.machine.wake_engines();
            // As a thread ends, it has nothing to remember any more.
            let mut told = TOLD.try_with(RefCell::take).unwrap_or_default();
            let wait_for_all = own.wait_for_all != 0;
            in_time = process.machine.events.wait(&mut all, wait_for_all, time, &mut told);
            let _ = TOLD.try_with(|own| own.replace(told));
            for (place, waited) in places.iter_mut().zip(&all) {
                answer(place, waited);
            }
            Ok(())
        })?;
    }
    own.wait_result = if in_time { COMPLETE } else { TIMEOUT };
    Ok(())
}

/// How often a signal had happened when the program looked last; 0 if it does not say that.
fn age(place: &EventData) -> u64 {
    let MemoryFailure { NotPresent: low, ReadOnly: high, .. } = place.memory_exception_data.failure;
    u64::from(low) | u64::from(high) << 32
}

fn answer(place: &mut EventData, waited: &Waited) {
    if let Some(fault) = &waited.fault {
        place.memory_exception_data = MemoryException {
            failure: MemoryFailure {
                NotPresent: (fault.reason == Inaccessible::NotPresent).into(),
                ReadOnly: (fault.reason == Inaccessible::ReadOnly).into(),
                NoExecute: 0,
                imprecise: 0,
            },
            va: fault.address,
            gpu_id: GpuNode(fault.node).id(),
            ErrorType: 0,
        };
    } else if waited.age != 0 {
        let failure = &mut place.memory_exception_data.failure;
        (failure.NotPresent, failure.ReadOnly) = (waited.age as u32, (waited.age >> 32) as u32);
    }
}
