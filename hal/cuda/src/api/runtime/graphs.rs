//! Graphs.

use super::{code, ready};
use crate::api::driver::graphs;
use crate::api::{Out, api};

api! { convert code;
    cudaStreamBeginCapture | cudaStreamBeginCapture_ptsz (stream: usize, _mode: i32) {
        ready()?;
        graphs::begin_capture(stream)
    }

    cudaStreamEndCapture | cudaStreamEndCapture_ptsz (stream: usize, graph: Out<usize>) {
        ready()?;
        graph.put(graphs::end_capture(stream)?)
    }

    cudaStreamIsCapturing | cudaStreamIsCapturing_ptsz (stream: usize, status: Out<i32>) {
        ready()?;
        status.put(graphs::capture_status(stream)?)
    }

    cudaGraphInstantiate | cudaGraphInstantiateWithFlags (executable: Out<usize>, graph: usize, _flags: u64) {
        ready()?;
        executable.put(graphs::instantiate(graph)?)
    }

    cudaGraphLaunch | cudaGraphLaunch_ptsz (executable: usize, stream: usize) {
        ready()?;
        graphs::launch_graph(executable, stream)
    }

    cudaGraphDestroy(graph: usize) {
        graphs::destroy(graph)
    }

    cudaGraphExecDestroy(executable: usize) {
        graphs::destroy_executable(executable)
    }
}
