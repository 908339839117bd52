//! Reading a GPU's memory while its kernels do not go on: by the engine for copies, where the
//! runtime's plain copy may wait for a kernel of its own.

use crate::HsaError;
use crate::device::processors;
use flipwave_device::Address;
use hsa_sys::*;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

/// How long a copy may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Ticks of the runtime's clock between two looks at how long it has taken.
const TICKS: u64 = 100_000;

/// Copies from a GPU.
///
/// # Errors
/// [`HsaError`], also when the engine has stopped.
pub fn read(gpu: hsa_agent_t, address: Address, bytes: &mut [u8]) -> Result<(), HsaError> {
    let failed = |call| HsaError { call, status: HSA_STATUS_ERROR };
    let functions = Library::open().map_err(|_| failed("dlopen"))?.functions;
    let host = processors(&functions, HSA_DEVICE_TYPE_CPU)?;
    let host = *host.first().ok_or(failed("hsa_iterate_agents"))?;
    let mut place = vec![0u8; bytes.len()];
    let mut seen = null_mut();
    // SAFETY: the memory stays until it is unlocked.
    let status = unsafe {
        (functions.hsa_amd_memory_lock)(place.as_mut_ptr().cast(), place.len(), &gpu, 1, &mut seen)
    };
    HsaError::check("hsa_amd_memory_lock", status)?;
    let mut signal = hsa_signal_t::default();
    // SAFETY: `signal` outlives the call, which writes one handle to it; no agents are named.
    let status = unsafe { (functions.hsa_signal_create)(1, 0, null(), &mut signal) };
    HsaError::check("hsa_signal_create", status)?;
    let from = address.0 as *const _;
    // SAFETY: the runtime refuses sources that it does not recognise; the destination was locked
    // for the GPU.
    let status = unsafe {
        let copy = functions.hsa_amd_memory_async_copy;
        copy(seen, host, from, gpu, place.len(), 0, null(), signal)
    };
    HsaError::check("hsa_amd_memory_async_copy", status)?;
    let start = Instant::now();
    loop {
        // SAFETY: the signal is ours.
        let value = unsafe {
            let wait = functions.hsa_signal_wait_scacquire;
            wait(signal, HSA_SIGNAL_CONDITION_LT, 1, TICKS, HSA_WAIT_STATE_BLOCKED)
        };
        if value < 1 {
            break;
        }
        if start.elapsed() > PATIENCE {
            // The engine may still write there.
            std::mem::forget(place);
            return Err(failed("waiting for hsa_amd_memory_async_copy"));
        }
    }
    bytes.copy_from_slice(&place);
    // SAFETY: both are ours, and nobody uses them any more. A failure leaves them behind.
    unsafe {
        let _ = (functions.hsa_signal_destroy)(signal);
        let _ = (functions.hsa_amd_memory_unlock)(place.as_mut_ptr().cast());
    }
    Ok(())
}
