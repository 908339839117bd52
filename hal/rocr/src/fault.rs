//! What the runtime says of faults, in the terms of devices.

use flipwave_device::{AccessKind, Address, FaultCause};
use hsa_sys::*;

/// The fault that an event of the system reports, if it does.
pub fn of_event(event: &hsa_amd_event_t) -> Option<FaultCause> {
    if event.event_type != HSA_AMD_GPU_MEMORY_FAULT_EVENT {
        return None;
    }
    let fault = &event.memory_fault;
    let writes = fault.fault_reason_mask & HSA_AMD_MEMORY_FAULT_READ_ONLY != 0;
    let access = if writes { AccessKind::Write } else { AccessKind::Read };
    let address = Address(fault.virtual_address);
    Some(FaultCause::MemoryViolation { address, access, lane: None })
}

/// What the status that a queue has stopped with means for its dispatch; nothing if it means that
/// something else is wrong.
pub fn of_status(status: hsa_status_t) -> Option<FaultCause> {
    let nowhere =
        FaultCause::MemoryViolation { address: Address(0), access: AccessKind::Read, lane: None };
    Some(match status {
        HSA_STATUS_ERROR_MEMORY_FAULT | HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION => nowhere,
        HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION => FaultCause::IllegalInstruction { word: 0 },
        // The runtime's trap handler stops a queue for the ABI's abort.
        HSA_STATUS_ERROR_EXCEPTION => FaultCause::Trap { id: 2 },
        _ => return None,
    })
}
