//! Signals of the tools library.

use super::TOOLS;
use crate::HsaError;
use hsa_sys::{HSA_SIGNAL_CONDITION_LT, hsa_signal_t};
use std::ffi::c_void;

/// A signal that begins with 1.
#[derive(Debug)]
pub struct Signal(hsa_signal_t);

impl Signal {
    pub fn new() -> Result<Signal, HsaError> {
        let missing = HsaError { call: "OnLoad", status: hsa_sys::HSA_STATUS_ERROR };
        let tools = TOOLS.get().ok_or(missing)?;
        let mut signal = hsa_signal_t::default();
        // SAFETY: `signal` outlives the call, which writes one handle to it; no agents are named.
        let status =
            unsafe { (tools.core.hsa_signal_create_fn)(1, 0, std::ptr::null(), &mut signal) };
        HsaError::check("hsa_signal_create", status)?;
        Ok(Signal(signal))
    }

    pub fn handle(&self) -> hsa_signal_t {
        self.0
    }

    /// Lets go who waits for it.
    pub fn clear(&self) {
        if let Some(tools) = TOOLS.get() {
            // SAFETY: the signal lives.
            unsafe { (tools.core.hsa_signal_store_screlease_fn)(self.0, 0) };
        }
    }

    /// Has something done, once, in a thread of the runtime's when it is 0.
    pub fn when_zero(&self, what: Box<dyn FnOnce() + Send>) -> Result<(), HsaError> {
        let Some(tools) = TOOLS.get() else { return Ok(()) };
        let argument = Box::into_raw(Box::new(what));
        // SAFETY: the signal lives until the handler has run, which owns its argument.
        let status = unsafe {
            (tools.amd.hsa_amd_signal_async_handler_fn)(
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
    // SAFETY: made by `when_zero`, and given here once.
    let what = unsafe { Box::from_raw(argument.cast::<Box<dyn FnOnce() + Send>>()) };
    what();
    false
}

impl Drop for Signal {
    fn drop(&mut self) {
        if let Some(tools) = TOOLS.get() {
            // SAFETY: the signal is ours, and nothing waits for it or is to decrement it any more:
            // see where jobs are dropped. A failure leaves it behind.
            let _ = unsafe { (tools.core.hsa_signal_destroy_fn)(self.0) };
        }
    }
}
