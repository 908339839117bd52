//! Memory of the host that kernels access, and that a fault of the device leaves intact.

use crate::CudaError;
use crate::context::Context;
use crate::functions::{Functions, MAPPED, PORTABLE};
use flipwave_device::Address;
use std::ffi::c_void;
use std::ptr::NonNull;

/// Page-locked memory of the host. It is not freed: kernels that hang may still write to it.
#[derive(Debug)]
pub struct HostBuffer {
    start: NonNull<u8>,
    bytes: usize,
    address: Address,
}

// SAFETY: the memory belongs to the process.
unsafe impl Send for HostBuffer {}

impl HostBuffer {
    /// Allocates zeroed memory.
    pub(crate) fn new(context: &Context, bytes: usize) -> Result<HostBuffer, CudaError> {
        let functions: &Functions = context.functions()?;
        let mut start: *mut c_void = std::ptr::null_mut();
        // SAFETY: `start` outlives the call, which writes an address of this many bytes of memory.
        let status =
            unsafe { (functions.cuMemHostAlloc)(&mut start, bytes.max(1), PORTABLE | MAPPED) };
        functions.check("cuMemHostAlloc", status)?;
        let mut address = 0;
        // SAFETY: `address` outlives the call; `start` was allocated above with this flag.
        let status = unsafe { (functions.cuMemHostGetDevicePointer_v2)(&mut address, start, 0) };
        functions.check("cuMemHostGetDevicePointer", status)?;
        let Some(start) = NonNull::new(start.cast::<u8>()) else {
            return Err(functions.error("cuMemHostAlloc", crate::functions::Status(2)));
        };
        // SAFETY: memory of this size, which was just allocated.
        unsafe { start.write_bytes(0, bytes) };
        Ok(HostBuffer { start, bytes, address: Address(address) })
    }

    /// Address at which kernels access the memory.
    pub fn address(&self) -> Address {
        self.address
    }

    /// The content, after the kernels that write it have ended.
    pub fn content(&self) -> Vec<u8> {
        // A kernel that hangs may write at the same time: bytes are read one by one, as memory of another process.
        // SAFETY: each address is inside of the allocated memory, which is never freed.
        (0..self.bytes).map(|offset| unsafe { self.start.add(offset).read_volatile() }).collect()
    }

    /// Sets all bytes to zero, before a kernel.
    pub fn clear(&self) {
        // SAFETY: memory of this size, which is never freed.
        unsafe { self.start.write_bytes(0, self.bytes) };
    }
}
