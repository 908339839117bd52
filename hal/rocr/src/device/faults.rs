//! Fault reports of the runtime.

use crate::fault;
use flipwave_device::FaultCause;
use hsa_sys::*;
use std::ffi::c_void;
use std::sync::{Mutex, Once, PoisonError};

/// The last memory fault. The runtime reports memory faults of all devices to one handler per process.
static MEMORY_FAULT: Mutex<Option<FaultCause>> = Mutex::new(None);

/// Registers a handler for memory faults. Without one the runtime aborts the process.
pub fn listen(functions: &Functions) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let register = functions.hsa_amd_register_system_event_handler;
        // SAFETY: the handler is a static function. If registration fails, a fault aborts the process.
        let _ = unsafe { register(on_event, std::ptr::null_mut()) };
    });
}

unsafe extern "C" fn on_event(event: *const hsa_amd_event_t, _: *mut c_void) -> hsa_status_t {
    // SAFETY: the runtime's event is valid during the call.
    let cause = unsafe { event.as_ref() }.and_then(fault::from_event);
    let Some(cause) = cause else { return HSA_STATUS_ERROR };
    *MEMORY_FAULT.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause);
    HSA_STATUS_SUCCESS
}

/// Takes the last memory fault.
pub fn take_memory_fault() -> Option<FaultCause> {
    MEMORY_FAULT.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Converts the status of a stopped queue; `None` if the status is not a fault of its dispatch.
pub fn cause(status: hsa_status_t) -> Option<FaultCause> {
    let reported = if status == HSA_STATUS_ERROR_MEMORY_FAULT { take_memory_fault() } else { None };
    reported.or_else(|| fault::from_status(status))
}
