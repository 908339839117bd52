//! The stream in which kernels are launched, one at a time.

use crate::context::Context;
use crate::functions::{Functions, Handle, NON_BLOCKING, Status};
use crate::{CudaError, fault};
use flipwave_device::FaultCause;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// `CUDA_ERROR_NOT_READY`.
const NOT_READY: Status = Status(600);
/// Time during which the end of a kernel is awaited without sleeping.
const SPIN: Duration = Duration::from_millis(2);
/// Interval between queries afterwards.
const PAUSE: Duration = Duration::from_micros(200);

/// A stream of a context.
#[derive(Debug)]
pub struct Stream {
    pub handle: Handle,
}

// SAFETY: streams belong to the process.
unsafe impl Send for Stream {}

/// The end of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelEnd {
    Completed,
    Hung,
    Faulted(FaultCause),
}

impl Stream {
    /// Creates a stream, whose work does not wait for that of others.
    pub fn new(context: &Context) -> Result<Stream, CudaError> {
        let functions = context.functions()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: `handle` outlives the call, which writes one handle.
        let status = unsafe { (functions.cuStreamCreate)(&mut handle, NON_BLOCKING) };
        functions.check("cuStreamCreate", status)?;
        Ok(Stream { handle })
    }

    /// Waits until the launched kernel ends, exceeds `limit`, or `stopped` is set.
    pub fn wait(
        &self,
        functions: &Functions,
        limit: Duration,
        stopped: &AtomicBool,
    ) -> Result<KernelEnd, CudaError> {
        let start = Instant::now();
        loop {
            // SAFETY: the stream exists as long as its context.
            let status = unsafe { (functions.cuStreamQuery)(self.handle) };
            if status == Status(0) {
                return Ok(KernelEnd::Completed);
            }
            if status != NOT_READY {
                let error = || functions.error("the kernel", status);
                return fault::cause(status.0).map(KernelEnd::Faulted).ok_or_else(error);
            }
            let elapsed = start.elapsed();
            if elapsed > limit || stopped.load(Ordering::Relaxed) {
                return Ok(KernelEnd::Hung);
            }
            if elapsed < SPIN {
                std::thread::yield_now();
            } else {
                std::thread::sleep(PAUSE);
            }
        }
    }
}
