//! Access to GPU memory from inside an application.

use super::copy_engine::CopyEngine;
use crate::HsaError;
use flipwave_device::Address;
use hsa_sys::hsa_agent_t;
use hsa_sys::signatures::hsa_memory_copy;

/// Reader and writer of GPU memory.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    copy: hsa_memory_copy,
    /// The GPU whose copy engine makes the copies; `None` for the runtime's plain copies, which may dispatch
    /// a kernel and wait for it.
    engine_of: Option<hsa_agent_t>,
}

impl Memory {
    pub(crate) fn new(copy: hsa_memory_copy) -> Memory {
        Memory { copy, engine_of: None }
    }

    /// Access to the memory of a GPU that executes no kernel until the running one ends.
    pub(crate) fn by_engine_of(self, gpu: hsa_agent_t) -> Memory {
        Memory { engine_of: Some(gpu), ..self }
    }

    /// Copies from a GPU.
    ///
    /// # Errors
    /// [`HsaError`].
    pub fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), HsaError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if let Some(gpu) = self.engine_of {
            return CopyEngine::new(gpu)?.read(address, bytes);
        }
        // SAFETY: the destination is valid, and the runtime rejects unknown source addresses.
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
        if let Some(gpu) = self.engine_of {
            return CopyEngine::new(gpu)?.write(address, bytes);
        }
        // SAFETY: the source is valid; the destination is a variable of a hook, which no other code
        // uses, or memory that the caller allocated.
        let status =
            unsafe { (self.copy)(address.0 as *mut _, bytes.as_ptr().cast(), bytes.len()) };
        HsaError::check("hsa_memory_copy", status)
    }
}
