//! A GPU's memory, from inside of an application.

use super::copy_engine;
use crate::HsaError;
use flipwave_device::Address;
use hsa_sys::hsa_agent_t;
use hsa_sys::signatures::hsa_memory_copy;

/// Reads and writes the memory of GPUs.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    copy: hsa_memory_copy,
    /// The GPU whose memory is read although its kernels do not go on.
    stopped: Option<hsa_agent_t>,
}

impl Memory {
    pub(crate) fn new(copy: hsa_memory_copy) -> Memory {
        Memory { copy, stopped: None }
    }

    /// The memory of a GPU whose kernels do not go on.
    pub(crate) fn of_stopped(self, gpu: hsa_agent_t) -> Memory {
        Memory { stopped: Some(gpu), ..self }
    }

    /// Copies from a GPU.
    ///
    /// # Errors
    /// [`HsaError`].
    pub fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), HsaError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if let Some(gpu) = self.stopped {
            return copy_engine::read(gpu, address, bytes);
        }
        // SAFETY: the destination is ours, and the runtime refuses sources that it does not
        // recognise.
        let status =
            unsafe { (self.copy)(bytes.as_mut_ptr().cast(), address.0 as *const _, bytes.len()) };
        HsaError::check("hsa_memory_copy", status)
    }

    /// Copies to a GPU.
    ///
    /// # Errors
    /// [`HsaError`].
    pub fn write(&self, address: Address, bytes: &[u8]) -> Result<(), HsaError> {
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the source is ours; what is written are variables of hooks, which nobody else
        // has, or memory that the caller allocated.
        let status =
            unsafe { (self.copy)(address.0 as *mut _, bytes.as_ptr().cast(), bytes.len()) };
        HsaError::check("hsa_memory_copy", status)
    }
}
