//! Access to GPU memory while the GPU's kernels are stopped, or while one runs. Uses the copy engine, because
//! the runtime's plain copy may dispatch a kernel and wait for it.

use crate::HsaError;
use crate::device::agents_of_type;
use flipwave_device::Address;
use hsa_sys::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

/// Timeout of a copy.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of one wait, in ticks of the runtime's clock, after which the copy's timeout is checked.
const TICKS: u64 = 100_000;

/// Bytes of the buffer of the host.
const BUFFER: usize = 1 << 16;

/// Copies between a GPU and the host. The buffer is prepared when the engine is created: to lock memory takes
/// until the running kernel's next pause.
#[derive(Debug)]
pub struct CopyEngine {
    functions: Functions,
    host: hsa_agent_t,
    gpu: hsa_agent_t,
    buffer: Box<[u8]>,
    /// Address of the buffer on the GPU.
    gpu_address: *mut c_void,
    /// 0 when a copy has ended.
    signal: hsa_signal_t,
    /// `true` if a copy has not ended in time: the engine may still access the buffer.
    is_stuck: bool,
}

// SAFETY: the address is that of the buffer, which the value owns; HSA's functions may be called on any thread.
unsafe impl Send for CopyEngine {}

impl CopyEngine {
    /// Prepares copies.
    ///
    /// # Errors
    /// [`HsaError`].
    pub(crate) fn new(gpu: hsa_agent_t) -> Result<CopyEngine, HsaError> {
        let failed = |call| HsaError { call, status: HSA_STATUS_ERROR };
        let functions = Library::open().map_err(|_| failed("dlopen"))?.functions;
        let host = agents_of_type(&functions, HSA_DEVICE_TYPE_CPU)?;
        let host = *host.first().ok_or(failed("hsa_iterate_agents"))?;
        let mut signal = hsa_signal_t::default();
        // SAFETY: `signal` outlives the call, which writes one handle to it; the list of consumers is empty.
        let status = unsafe { (functions.hsa_signal_create)(0, 0, null(), &mut signal) };
        HsaError::check("hsa_signal_create", status)?;
        let mut buffer = vec![0u8; BUFFER].into_boxed_slice();
        let mut gpu_address = null_mut();
        // SAFETY: the buffer lives until it is unlocked, or for ever.
        let status = unsafe {
            let (start, length) = (buffer.as_mut_ptr().cast(), buffer.len());
            (functions.hsa_amd_memory_lock)(start, length, &gpu, 1, &mut gpu_address)
        };
        HsaError::check("hsa_amd_memory_lock", status)?;
        let is_stuck = false;
        Ok(CopyEngine { functions, host, gpu, buffer, gpu_address, signal, is_stuck })
    }

    /// Copies from a GPU.
    ///
    /// # Errors
    /// [`HsaError`], also if the copy engine has stopped.
    pub fn read(&mut self, address: Address, bytes: &mut [u8]) -> Result<(), HsaError> {
        for (part, start) in bytes.chunks_mut(BUFFER).zip((address.0..).step_by(BUFFER)) {
            let (to, from) = (self.gpu_address, start as *const c_void);
            self.copy(to, self.host, from, self.gpu, part.len())?;
            part.copy_from_slice(&self.buffer[..part.len()]);
        }
        Ok(())
    }

    /// Copies to a GPU: to a variable of a hook, which no other code uses.
    ///
    /// # Errors
    /// [`HsaError`], also if the copy engine has stopped.
    pub fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), HsaError> {
        for (part, start) in bytes.chunks(BUFFER).zip((address.0..).step_by(BUFFER)) {
            self.buffer[..part.len()].copy_from_slice(part);
            self.copy(start as *mut c_void, self.gpu, self.gpu_address, self.host, part.len())?;
        }
        Ok(())
    }

    /// Makes one copy.
    fn copy(
        &mut self,
        to: *mut c_void,
        to_agent: hsa_agent_t,
        from: *const c_void,
        from_agent: hsa_agent_t,
        bytes: usize,
    ) -> Result<(), HsaError> {
        let failed = HsaError { call: "hsa_amd_memory_async_copy", status: HSA_STATUS_ERROR };
        if self.is_stuck {
            return Err(failed);
        }
        // SAFETY: this value owns the signal. The runtime rejects unknown addresses; the buffer is locked for the
        // GPU and at least as large, and the caller may write to the GPU's memory at the destination.
        let status = unsafe {
            (self.functions.hsa_signal_store_screlease)(self.signal, 1);
            let copy = self.functions.hsa_amd_memory_async_copy;
            copy(to, to_agent, from, from_agent, bytes, 0, null(), self.signal)
        };
        HsaError::check("hsa_amd_memory_async_copy", status)?;
        let start = Instant::now();
        loop {
            // SAFETY: this value owns the signal.
            let value = unsafe {
                let wait = self.functions.hsa_signal_wait_scacquire;
                wait(self.signal, HSA_SIGNAL_CONDITION_LT, 1, TICKS, HSA_WAIT_STATE_BLOCKED)
            };
            if value < 1 {
                return Ok(());
            }
            if start.elapsed() > TIMEOUT {
                self.is_stuck = true;
                return Err(failed);
            }
        }
    }
}

impl Drop for CopyEngine {
    fn drop(&mut self) {
        if self.is_stuck {
            // The copy engine may still access the buffer and the signal.
            std::mem::forget(std::mem::take(&mut self.buffer));
            return;
        }
        // SAFETY: this value owns both, and no copy runs. A failure leaks them.
        unsafe {
            let _ = (self.functions.hsa_signal_destroy)(self.signal);
            let _ = (self.functions.hsa_amd_memory_unlock)(self.buffer.as_mut_ptr().cast());
        }
    }
}
