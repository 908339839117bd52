//! Streams, and functions of the application in them.

use super::code;
use crate::api::{Current, Out, api};
use crate::driver::Stream;
use crate::handles::lock;
use crate::queue::{HostFunction, Work};
use crate::status::Status;
use std::sync::atomic::Ordering;

/// Creates a stream in the current context.
pub(in crate::api) fn create(flags: u32, priority: i32) -> Result<usize, Status> {
    let current = Current::get()?;
    if flags > 1 {
        return Err(Status::INVALID_VALUE);
    }
    let number = current.driver.stream_count.fetch_add(1, Ordering::Relaxed) + 1;
    let stream =
        Stream::new(number, current.context.device, current.handle, flags, priority.clamp(-5, 0));
    Ok(current.driver.streams.add(stream))
}

/// Destroys a stream. Its work is still executed.
pub(in crate::api) fn destroy(stream: usize) -> Result<(), Status> {
    let current = Current::any()?;
    current.driver.streams.remove(stream).map(|_| ()).ok_or(Status::INVALID_HANDLE)
}

/// Returns [`Status::NOT_READY`] if a stream has work.
pub(in crate::api) fn query(stream: usize) -> Result<(), Status> {
    let current = Current::get()?;
    let stream = current.stream(stream)?;
    if current.driver.queue.is_done(stream.last.load(Ordering::Acquire)) {
        Ok(())
    } else {
        Err(Status::NOT_READY)
    }
}

/// Waits for the work of a stream.
pub(in crate::api) fn synchronize(stream: usize) -> Result<(), Status> {
    let current = Current::any()?;
    let found = current.stream(stream)?;
    if lock(&found.capture).is_some() {
        return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
    }
    if found.number == 0 {
        // Work of blocking streams precedes that of the default stream.
        return current.driver.synchronize(found.device);
    }
    current.driver.wait(found.device, found.last.load(Ordering::Acquire))
}

/// Makes a stream wait for an event: work is executed in order of submission, so that only captures change.
pub(in crate::api) fn wait_event(stream: usize, event: usize) -> Result<(), Status> {
    let current = Current::get()?;
    let stream = current.stream(stream)?;
    let event = current.driver.events.get(event).ok_or(Status::INVALID_HANDLE)?;
    if let Some(graph) = *lock(&event.capture) {
        if stream.number == 0 {
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        *lock(&stream.capture) = Some(graph);
    }
    Ok(())
}

/// Calls a function of the application in the order of a stream.
pub(in crate::api) fn call(
    stream: usize,
    function: HostFunction,
    argument: usize,
) -> Result<(), Status> {
    let current = Current::get()?;
    let stream = current.stream(stream)?;
    current.driver.submit(&stream, Work::Call(function, argument));
    Ok(())
}

api! { convert code;
    cuStreamCreate(stream: Out<usize>, flags: u32) {
        stream.put(create(flags, 0)?)
    }

    cuStreamCreateWithPriority(stream: Out<usize>, flags: u32, priority: i32) {
        stream.put(create(flags, priority)?)
    }

    cuStreamDestroy_v2 | cuStreamDestroy (stream: usize) {
        destroy(stream)
    }

    cuStreamQuery | cuStreamQuery_ptsz (stream: usize) {
        query(stream)
    }

    cuStreamSynchronize | cuStreamSynchronize_ptsz (stream: usize) {
        synchronize(stream)
    }

    cuStreamWaitEvent | cuStreamWaitEvent_ptsz (stream: usize, event: usize, _flags: u32) {
        wait_event(stream, event)
    }

    cuStreamGetFlags | cuStreamGetFlags_ptsz (stream: usize, flags: Out<u32>) {
        flags.put(Current::get()?.stream(stream)?.flags)
    }

    cuStreamGetPriority | cuStreamGetPriority_ptsz (stream: usize, priority: Out<i32>) {
        priority.put(Current::get()?.stream(stream)?.priority)
    }

    cuStreamGetCtx | cuStreamGetCtx_ptsz (stream: usize, context: Out<usize>) {
        let current = Current::get()?;
        let own = current.stream(stream)?.context;
        context.put(if own == 0 { current.handle } else { own })
    }

    cuStreamGetId | cuStreamGetId_ptsz (stream: usize, id: Out<u64>) {
        id.put(Current::get()?.stream(stream)?.number)
    }

    cuStreamGetDevice | cuStreamGetDevice_ptsz (stream: usize, device: Out<i32>) {
        device.put(Current::get()?.stream(stream)?.device as i32)
    }

    cuLaunchHostFunc | cuLaunchHostFunc_ptsz (
        stream: usize, function: Option<unsafe extern "C" fn(usize)>, argument: usize,
    ) {
        let function = function.ok_or(Status::INVALID_VALUE)?;
        call(stream, HostFunction::Plain(function), argument)
    }

    cuStreamAddCallback | cuStreamAddCallback_ptsz (
        stream: usize,
        function: Option<unsafe extern "C" fn(usize, i32, usize)>,
        argument: usize,
        _flags: u32,
    ) {
        let function = function.ok_or(Status::INVALID_VALUE)?;
        call(stream, HostFunction::Callback(function, stream), argument)
    }

    cuStreamWaitValue32_v2 | cuStreamWaitValue32 | cuStreamWriteValue32_v2 | cuStreamWriteValue32 (
        _stream: usize, _address: u64, _value: u32, _flags: u32,
    ) {
        Err(Status::NOT_SUPPORTED)
    }
}
