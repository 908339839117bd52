//! Signals owned by the tools library.

use super::runtime::RUNTIME;
use crate::HsaError;
use hsa_sys::{HSA_SIGNAL_CONDITION_LT, hsa_signal_t};
use std::ffi::c_void;

/// A signal with the initial value 1.
#[derive(Debug)]
pub struct Signal(hsa_signal_t);

impl Signal {
    pub fn new() -> Result<Signal, HsaError> {
        let missing = HsaError { call: "OnLoad", status: hsa_sys::HSA_STATUS_ERROR };
        let runtime = RUNTIME.get().ok_or(missing)?;
        let mut signal = hsa_signal_t::default();
        // SAFETY: `signal` outlives the call, which writes one handle to it; the list of consumers is
        // empty.
        let status =
            unsafe { (runtime.core.hsa_signal_create_fn)(1, 0, std::ptr::null(), &mut signal) };
        HsaError::check("hsa_signal_create", status)?;
        Ok(Signal(signal))
    }

    pub fn handle(&self) -> hsa_signal_t {
        self.0
    }

    /// Sets the signal to 0, which releases its waiters.
    pub fn clear(&self) {
        if let Some(runtime) = RUNTIME.get() {
            // SAFETY: the signal is alive.
            unsafe { (runtime.core.hsa_signal_store_screlease_fn)(self.0, 0) };
        }
    }

    /// Calls `handler` once, on a thread of the runtime, when the signal becomes 0.
    pub fn when_zero(&self, handler: Box<dyn FnOnce() + Send>) -> Result<(), HsaError> {
        let Some(runtime) = RUNTIME.get() else { return Ok(()) };
        let argument = Box::into_raw(Box::new(handler));
        // SAFETY: the signal lives until the handler has run; the handler owns its argument.
        let status = unsafe {
            (runtime.amd.hsa_amd_signal_async_handler_fn)(
                self.0,
                HSA_SIGNAL_CONDITION_LT,
                1,
                run,
                argument.cast(),
            )
        };
        HsaError::check("hsa_amd_signal_async_handler", status)
    }
}

unsafe extern "C" fn run(_: i64, argument: *mut c_void) -> bool {
    // SAFETY: created by `when_zero` and passed to this function once.
    let handler = unsafe { Box::from_raw(argument.cast::<Box<dyn FnOnce() + Send>>()) };
    handler();
    false
}

impl Drop for Signal {
    fn drop(&mut self) {
        if let Some(runtime) = RUNTIME.get() {
            // SAFETY: this value owns the signal, and no packet waits for it or decrements it any
            // more: see `QueueState::drop_retired`. A failure leaks the signal.
            let _ = unsafe { (runtime.core.hsa_signal_destroy_fn)(self.0) };
        }
    }
}
