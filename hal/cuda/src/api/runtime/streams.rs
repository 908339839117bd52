//! Streams and events.

use super::{code, ready};
use crate::api::driver::{events, streams};
use crate::api::{Out, api};
use crate::queue::HostFunction;
use crate::status::Status;

api! { convert code;
    cudaStreamCreate(stream: Out<usize>) {
        ready()?;
        stream.put(streams::create(0, 0)?)
    }

    cudaStreamCreateWithFlags(stream: Out<usize>, flags: u32) {
        ready()?;
        stream.put(streams::create(flags, 0)?)
    }

    cudaStreamCreateWithPriority(stream: Out<usize>, flags: u32, priority: i32) {
        ready()?;
        stream.put(streams::create(flags, priority)?)
    }

    cudaStreamDestroy(stream: usize) {
        ready()?;
        streams::destroy(stream)
    }

    cudaStreamSynchronize | cudaStreamSynchronize_ptsz (stream: usize) {
        ready()?;
        streams::synchronize(stream)
    }

    cudaStreamQuery | cudaStreamQuery_ptsz (stream: usize) {
        ready()?;
        streams::query(stream)
    }

    cudaStreamWaitEvent | cudaStreamWaitEvent_ptsz (stream: usize, event: usize, _flags: u32) {
        ready()?;
        streams::wait_event(stream, event)
    }

    cudaStreamGetFlags | cudaStreamGetFlags_ptsz (stream: usize, flags: Out<u32>) {
        flags.put(ready()?.stream(stream)?.flags)
    }

    cudaStreamGetPriority | cudaStreamGetPriority_ptsz (stream: usize, priority: Out<i32>) {
        priority.put(ready()?.stream(stream)?.priority)
    }

    cudaStreamAttachMemAsync | cudaStreamAttachMemAsync_ptsz (
        stream: usize, _pointer: u64, _bytes: usize, _flags: u32,
    ) {
        ready()?.stream(stream).map(|_| ())
    }

    cudaLaunchHostFunc | cudaLaunchHostFunc_ptsz (
        stream: usize, function: Option<unsafe extern "C" fn(usize)>, argument: usize,
    ) {
        ready()?;
        streams::call(stream, HostFunction::Plain(function.ok_or(Status::INVALID_VALUE)?), argument)
    }

    cudaStreamAddCallback | cudaStreamAddCallback_ptsz (
        stream: usize,
        function: Option<unsafe extern "C" fn(usize, i32, usize)>,
        argument: usize,
        _flags: u32,
    ) {
        ready()?;
        let function = function.ok_or(Status::INVALID_VALUE)?;
        streams::call(stream, HostFunction::Callback(function, stream), argument)
    }

    cudaEventCreate(event: Out<usize>) {
        ready()?;
        event.put(events::create(0)?)
    }

    cudaEventCreateWithFlags(event: Out<usize>, flags: u32) {
        ready()?;
        event.put(events::create(flags)?)
    }

    cudaEventDestroy(event: usize) {
        ready()?;
        events::destroy(event)
    }

    cudaEventRecord | cudaEventRecord_ptsz (event: usize, stream: usize) {
        ready()?;
        events::record(event, stream)
    }

    cudaEventRecordWithFlags | cudaEventRecordWithFlags_ptsz (event: usize, stream: usize, _flags: u32) {
        ready()?;
        events::record(event, stream)
    }

    cudaEventQuery(event: usize) {
        ready()?;
        events::query(event)
    }

    cudaEventSynchronize(event: usize) {
        ready()?;
        events::synchronize(event)
    }

    cudaEventElapsedTime | cudaEventElapsedTime_v2 (milliseconds: Out<f32>, start: usize, end: usize) {
        ready()?;
        milliseconds.put(events::elapsed(start, end)?)
    }
}
