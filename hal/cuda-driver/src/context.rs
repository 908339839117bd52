//! The primary context of a device.

use crate::CudaError;
use crate::functions::{DeviceHandle, Functions, Handle};

/// A use of the primary context of a device. Only one thread uses it at a time.
#[derive(Debug)]
pub struct Context {
    functions: Functions,
    device: DeviceHandle,
    handle: Handle,
}

// SAFETY: contexts belong to the process; each call makes its context that of the calling thread.
unsafe impl Send for Context {}

impl Context {
    /// Begins a use of the context.
    pub fn new(functions: Functions, device: DeviceHandle) -> Result<Context, CudaError> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: `handle` outlives the call, which writes one handle.
        let status = unsafe { (functions.cuDevicePrimaryCtxRetain)(&mut handle, device) };
        functions.check("cuDevicePrimaryCtxRetain", status)?;
        Ok(Context { functions, device, handle })
    }

    /// The functions of the driver, which act in this context.
    pub fn functions(&self) -> Result<&Functions, CudaError> {
        // SAFETY: the context exists until this use of it ends.
        let status = unsafe { (self.functions.cuCtxSetCurrent)(self.handle) };
        self.functions.check("cuCtxSetCurrent", status).map(|()| &self.functions)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: ends the use that began in `new`. An error belongs to an earlier kernel.
        let _ = unsafe { (self.functions.cuDevicePrimaryCtxRelease_v2)(self.device) };
    }
}
