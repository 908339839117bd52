//! Events.
//!
//! Their times are those of the device's clock, which counts work: see [`crate::queue::Clock`].

use super::code;
use crate::api::{Current, Out, api};
use crate::driver::Event;
use crate::handles::lock;
use crate::queue::Work;
use crate::status::Status;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Flag of events without times (`CU_EVENT_DISABLE_TIMING`).
const DISABLE_TIMING: u32 = 2;

/// Creates an event in the current context.
pub(in crate::api) fn create(flags: u32) -> Result<usize, Status> {
    let current = Current::get()?;
    if flags > 7 {
        return Err(Status::INVALID_VALUE);
    }
    let (number, time, capture) = Default::default();
    Ok(current.driver.events.add(Event {
        device: current.context.device,
        flags,
        number,
        time,
        capture,
    }))
}

/// Destroys an event.
pub(in crate::api) fn destroy(event: usize) -> Result<(), Status> {
    Current::any()?.driver.events.remove(event).map(|_| ()).ok_or(Status::INVALID_HANDLE)
}

/// Records an event in a stream.
pub(in crate::api) fn record(event: usize, stream: usize) -> Result<(), Status> {
    let current = Current::get()?;
    let stream = current.stream(stream)?;
    let event = current.driver.events.get(event).ok_or(Status::INVALID_HANDLE)?;
    let graph = *lock(&stream.capture);
    *lock(&event.capture) = graph;
    if graph.is_some() {
        return Ok(());
    }
    let time = Arc::new(AtomicU64::new(0));
    *lock(&event.time) = Arc::clone(&time);
    current.driver.submit(&stream, Work::Record(time));
    event.number.store(stream.last.load(Ordering::Acquire), Ordering::Release);
    Ok(())
}

/// Returns [`Status::NOT_READY`] if an event has not been reached.
pub(in crate::api) fn query(event: usize) -> Result<(), Status> {
    let current = Current::get()?;
    let event = current.driver.events.get(event).ok_or(Status::INVALID_HANDLE)?;
    let number = event.number.load(Ordering::Acquire);
    if current.driver.queue.is_done(number) { Ok(()) } else { Err(Status::NOT_READY) }
}

/// Waits for an event.
pub(in crate::api) fn synchronize(event: usize) -> Result<(), Status> {
    let current = Current::any()?;
    let event = current.driver.events.get(event).ok_or(Status::INVALID_HANDLE)?;
    current.driver.wait(event.device, event.number.load(Ordering::Acquire))
}

/// The time between two events in milliseconds.
pub(in crate::api) fn elapsed(start: usize, end: usize) -> Result<f32, Status> {
    let current = Current::get()?;
    let time = |handle: usize| {
        let event = current.driver.events.get(handle).ok_or(Status::INVALID_HANDLE)?;
        let number = event.number.load(Ordering::Acquire);
        if event.flags & DISABLE_TIMING != 0 || number == 0 {
            return Err(Status::INVALID_HANDLE);
        }
        if !current.driver.queue.is_done(number) {
            return Err(Status::NOT_READY);
        }
        Ok(lock(&event.time).load(Ordering::Acquire))
    };
    let (start, end) = (time(start)?, time(end)?);
    Ok((end as f64 - start as f64) as f32 / 1.0e6)
}

api! { convert code;
    cuEventCreate(event: Out<usize>, flags: u32) {
        event.put(create(flags)?)
    }

    cuEventDestroy_v2 | cuEventDestroy (event: usize) {
        destroy(event)
    }

    cuEventRecord | cuEventRecord_ptsz (event: usize, stream: usize) {
        record(event, stream)
    }

    cuEventRecordWithFlags | cuEventRecordWithFlags_ptsz (event: usize, stream: usize, _flags: u32) {
        record(event, stream)
    }

    cuEventQuery(event: usize) {
        query(event)
    }

    cuEventSynchronize(event: usize) {
        synchronize(event)
    }

    cuEventElapsedTime | cuEventElapsedTime_v2 (milliseconds: Out<f32>, start: usize, end: usize) {
        milliseconds.put(elapsed(start, end)?)
    }
}
