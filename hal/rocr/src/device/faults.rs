//! What the runtime tells of dispatches that go wrong.

use flipwave_device::{AccessKind, Address, FaultCause};
use hsa_sys::*;
use std::ffi::c_void;
use std::sync::{Mutex, Once, PoisonError};

/// The last access to memory that was not there. The runtime tells it to the process, once for all
/// devices.
static MEMORY_FAULT: Mutex<Option<FaultCause>> = Mutex::new(None);

/// Has the runtime tell of such accesses; otherwise it would end the process.
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
    let Some(event) = (unsafe { event.as_ref() }) else { return HSA_STATUS_ERROR };
    if event.event_type != HSA_AMD_GPU_MEMORY_FAULT_EVENT {
        return HSA_STATUS_ERROR;
    }
    let fault = &event.memory_fault;
    let writes = fault.fault_reason_mask & HSA_AMD_MEMORY_FAULT_READ_ONLY != 0;
    let access = if writes { AccessKind::Write } else { AccessKind::Read };
    let address = Address(fault.virtual_address);
    let cause = FaultCause::MemoryViolation { address, access, lane: None };
    *MEMORY_FAULT.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause);
    HSA_STATUS_SUCCESS
}

/// The memory fault that has happened, if one has; it is told once.
pub fn memory_fault() -> Option<FaultCause> {
    MEMORY_FAULT.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// What the status that a queue has stopped with means for its dispatch; nothing if it means that
/// the tool is wrong.
pub fn cause(status: hsa_status_t) -> Option<FaultCause> {
    let nowhere =
        FaultCause::MemoryViolation { address: Address(0), access: AccessKind::Read, lane: None };
    Some(match status {
        HSA_STATUS_ERROR_MEMORY_FAULT => memory_fault().unwrap_or(nowhere),
        HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION => nowhere,
        HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION => FaultCause::IllegalInstruction { word: 0 },
        // The runtime's trap handler stops a queue for the ABI's abort.
        HSA_STATUS_ERROR_EXCEPTION => FaultCause::Trap { id: 2 },
        _ => return None,
    })
}
