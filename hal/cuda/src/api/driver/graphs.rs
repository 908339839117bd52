//! Graphs: work of streams that is recorded, and launched any number of times in the recorded order.

use super::code;
use super::kernels::{LaunchRequest, launch};
use crate::api::{Current, In, Out, api, driver};
use crate::driver::Stream;
use crate::handles::lock;
use crate::status::Status;
use std::sync::Mutex;

/// Makes a stream record its work.
pub(in crate::api) fn begin_capture(stream: usize) -> Result<(), Status> {
    let current = Current::get()?;
    let stream = current.stream(stream)?;
    if stream.number == 0 {
        return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
    }
    let mut capture = lock(&stream.capture);
    if capture.is_some() {
        return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
    }
    *capture = Some(current.driver.graphs.add(Mutex::default()));
    Ok(())
}

/// Ends the capture of a stream and of all streams that joined; returns the graph.
pub(in crate::api) fn end_capture(stream: usize) -> Result<usize, Status> {
    let current = Current::any()?;
    let graph = *lock(&current.stream(stream)?.capture);
    let graph = graph.ok_or(Status::STREAM_CAPTURE_UNMATCHED)?;
    for (_, joined) in current.driver.streams.all() {
        let mut capture = lock(&joined.capture);
        if *capture == Some(graph) {
            *capture = None;
        }
    }
    for (_, event) in current.driver.events.all() {
        let mut capture = lock(&event.capture);
        if *capture == Some(graph) {
            *capture = None;
        }
    }
    Ok(graph)
}

/// `CU_STREAM_CAPTURE_STATUS_NONE` or `_ACTIVE`.
pub(in crate::api) fn capture_status(stream: usize) -> Result<i32, Status> {
    Ok(i32::from(lock(&Current::any()?.stream(stream)?.capture).is_some()))
}

/// Makes a graph that can be launched.
pub(in crate::api) fn instantiate(graph: usize) -> Result<usize, Status> {
    let driver = driver()?;
    let graph = driver.graphs.get(graph).ok_or(Status::INVALID_HANDLE)?;
    let works = lock(&graph).clone();
    Ok(driver.executables.add(works))
}

/// Submits the work of a graph to a stream.
pub(in crate::api) fn launch_graph(graph: usize, stream: usize) -> Result<(), Status> {
    let current = Current::get()?;
    let stream = current.stream(stream)?;
    let graph = current.driver.executables.get(graph).ok_or(Status::INVALID_HANDLE)?;
    graph.iter().for_each(|work| current.driver.submit(&stream, work.clone()));
    Ok(())
}

/// Destroys a graph.
pub(in crate::api) fn destroy(graph: usize) -> Result<(), Status> {
    driver()?.graphs.remove(graph).map(|_| ()).ok_or(Status::INVALID_HANDLE)
}

/// Destroys a graph that can be launched.
pub(in crate::api) fn destroy_executable(graph: usize) -> Result<(), Status> {
    driver()?.executables.remove(graph).map(|_| ()).ok_or(Status::INVALID_HANDLE)
}

/// `CUDA_KERNEL_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
struct KernelNode {
    function: usize,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    arguments: In<usize>,
    extra: In<usize>,
    kernel: usize,
    context: usize,
}

api! { convert code;
    cuStreamBeginCapture_v2 | cuStreamBeginCapture | cuStreamBeginCapture_v2_ptsz (stream: usize, _mode: i32) {
        begin_capture(stream)
    }

    cuStreamEndCapture | cuStreamEndCapture_ptsz (stream: usize, graph: Out<usize>) {
        graph.put(end_capture(stream)?)
    }

    cuStreamIsCapturing | cuStreamIsCapturing_ptsz (stream: usize, status: Out<i32>) {
        status.put(capture_status(stream)?)
    }

    cuStreamGetCaptureInfo_v2 | cuStreamGetCaptureInfo_v2_ptsz (
        stream: usize, status: Out<i32>, id: Out<u64>, graph: Out<usize>, _nodes: usize, count: Out<usize>,
    ) {
        let captured = *lock(&Current::any()?.stream(stream)?.capture);
        status.put(i32::from(captured.is_some()))?;
        id.put_if_wanted(captured.unwrap_or(0) as u64);
        graph.put_if_wanted(captured.unwrap_or(0));
        count.put_if_wanted(0);
        Ok(())
    }

    cuThreadExchangeStreamCaptureMode(mode: Out<i32>) {
        // Calls are not restricted in any mode.
        mode.put(2)
    }

    cuGraphCreate(graph: Out<usize>, _flags: u32) {
        graph.put(driver()?.graphs.add(Mutex::default()))
    }

    cuGraphDestroy(graph: usize) {
        destroy(graph)
    }

    cuGraphClone(clone: Out<usize>, graph: usize) {
        let driver = driver()?;
        let found = driver.graphs.get(graph).ok_or(Status::INVALID_HANDLE)?;
        let works = lock(&found).clone();
        clone.put(driver.graphs.add(Mutex::new(works)))
    }

    cuGraphGetNodes(graph: usize, nodes: Out<usize>, count: Out<usize>) {
        let found = driver()?.graphs.get(graph).ok_or(Status::INVALID_HANDLE)?;
        let all = lock(&found).len();
        let wanted = if nodes.0.is_null() { 0 } else { count.get().unwrap_or(0) };
        (0..wanted).for_each(|number| nodes.put_at(number, if number < all { number + 1 } else { 0 }));
        count.put(if nodes.0.is_null() { all } else { all.min(wanted) })
    }

    cuGraphAddKernelNode_v2 | cuGraphAddKernelNode (
        node: Out<usize>, graph: usize, _dependencies: usize, _count: usize, parameters: In<KernelNode>,
    ) {
        let current = Current::get()?;
        let found = current.driver.graphs.get(graph).ok_or(Status::INVALID_HANDLE)?;
        let KernelNode { function, grid, block, shared_bytes, arguments, extra, .. } = parameters.get()?;
        // Dependencies only name nodes that were added before: the order of adding respects them.
        let stream = Stream::new(0, current.context.device, current.handle, 0, 0);
        *lock(&stream.capture) = Some(graph);
        let handle = current.driver.streams.add(stream);
        let launched = launch(LaunchRequest {
            function,
            grid,
            block,
            shared_bytes: shared_bytes as usize,
            stream: handle,
            arguments,
            extra,
            is_cooperative: false,
        });
        current.driver.streams.remove(handle);
        launched?;
        let number = lock(&found).len();
        node.put(number)
    }

    cuGraphInstantiateWithFlags(executable: Out<usize>, graph: usize, _flags: u64) {
        executable.put(instantiate(graph)?)
    }

    cuGraphInstantiate_v2 | cuGraphInstantiate (
        executable: Out<usize>, graph: usize, _node: usize, _log: usize, _bytes: usize,
    ) {
        executable.put(instantiate(graph)?)
    }

    cuGraphUpload | cuGraphUpload_ptsz (executable: usize, _stream: usize) {
        driver()?.executables.get(executable).map(|_| ()).ok_or(Status::INVALID_HANDLE)
    }

    cuGraphLaunch | cuGraphLaunch_ptsz (executable: usize, stream: usize) {
        launch_graph(executable, stream)
    }

    cuGraphExecDestroy(executable: usize) {
        destroy_executable(executable)
    }
}
