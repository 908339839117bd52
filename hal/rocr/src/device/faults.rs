//! What the runtime reports of dispatches that go wrong.

use crate::fault;
use flipwave_device::FaultCause;
use hsa_sys::*;
use std::ffi::c_void;
use std::sync::{Mutex, Once, PoisonError};

/// The last access to memory that was not there. The runtime reports it to the process, once for
/// all devices.
static MEMORY_FAULT: Mutex<Option<FaultCause>> = Mutex::new(None);

/// Has the runtime report such accesses; otherwise it would end the process.
pub fn listen(functions: &Functions) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let register = functions.hsa_amd_register_system_event_handler;
        // SAFETY: a function that stays. Where it is refused the process ends with the fault.
        let _ = unsafe { register(on_event, std::ptr::null_mut()) };
    });
}

unsafe extern "C" fn on_event(event: *const hsa_amd_event_t, _: *mut c_void) -> hsa_status_t {
    // SAFETY: the runtime's event, while it calls.
    let cause = unsafe { event.as_ref() }.and_then(fault::of_event);
    let Some(cause) = cause else { return HSA_STATUS_ERROR };
    *MEMORY_FAULT.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause);
    HSA_STATUS_SUCCESS
}

/// The memory fault that has happened, if one has; it is given once.
pub fn memory_fault() -> Option<FaultCause> {
    MEMORY_FAULT.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// What the status that a queue has stopped with means for its dispatch; nothing if it means that
/// the tool is wrong.
pub fn cause(status: hsa_status_t) -> Option<FaultCause> {
    let known = if status == HSA_STATUS_ERROR_MEMORY_FAULT { memory_fault() } else { None };
    known.or_else(|| fault::of_status(status))
}
