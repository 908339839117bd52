//! Reading of GPU memory while the GPU's kernels are stopped. Uses the copy engine, because the runtime's
//! plain copy may dispatch a kernel and wait for it.

use crate::HsaError;
use crate::device::agents_of_type;
use flipwave_device::Address;
use hsa_sys::*;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

/// Timeout of a copy.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of one wait, in ticks of the runtime's clock, after which the copy's timeout is checked.
const TICKS: u64 = 100_000;

/// Copies from a GPU.
///
/// # Errors
/// [`HsaError`], also if the copy engine has stopped.
pub fn read(gpu: hsa_agent_t, address: Address, bytes: &mut [u8]) -> Result<(), HsaError> {
    let failed = |call| HsaError { call, status: HSA_STATUS_ERROR };
    let functions = Library::open().map_err(|_| failed("dlopen"))?.functions;
    let host = agents_of_type(&functions, HSA_DEVICE_TYPE_CPU)?;
    let host = *host.first().ok_or(failed("hsa_iterate_agents"))?;
    let mut buffer = vec![0u8; bytes.len()];
    let mut gpu_address = null_mut();
    // SAFETY: the buffer lives until it is unlocked.
    let status = unsafe {
        let (start, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        (functions.hsa_amd_memory_lock)(start, length, &gpu, 1, &mut gpu_address)
    };
    HsaError::check("hsa_amd_memory_lock", status)?;
    let mut signal = hsa_signal_t::default();
    // SAFETY: `signal` outlives the call, which writes one handle to it; the list of consumers is empty.
    let status = unsafe { (functions.hsa_signal_create)(1, 0, null(), &mut signal) };
    HsaError::check("hsa_signal_create", status)?;
    let source = address.0 as *const _;
    // SAFETY: the runtime rejects unknown source addresses; the destination is locked for the GPU.
    let status = unsafe {
        let copy = functions.hsa_amd_memory_async_copy;
        copy(gpu_address, host, source, gpu, buffer.len(), 0, null(), signal)
    };
    HsaError::check("hsa_amd_memory_async_copy", status)?;
    let start = Instant::now();
    loop {
        // SAFETY: this function owns the signal.
        let value = unsafe {
            let wait = functions.hsa_signal_wait_scacquire;
            wait(signal, HSA_SIGNAL_CONDITION_LT, 1, TICKS, HSA_WAIT_STATE_BLOCKED)
        };
        if value < 1 {
            break;
        }
        if start.elapsed() > TIMEOUT {
            // The copy engine may still write to the buffer.
            std::mem::forget(buffer);
            return Err(failed("waiting for hsa_amd_memory_async_copy"));
        }
    }
    bytes.copy_from_slice(&buffer);
    // SAFETY: this function owns both, and the copy has ended. A failure leaks them.
    unsafe {
        let _ = (functions.hsa_signal_destroy)(signal);
        let _ = (functions.hsa_amd_memory_unlock)(buffer.as_mut_ptr().cast());
    }
    Ok(())
}
