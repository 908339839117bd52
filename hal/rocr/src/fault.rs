//! Conversion of the runtime's fault reports to [`FaultCause`].

use flipwave_device::{AccessKind, Address, FaultCause};
use hsa_sys::*;

/// Converts a system event; `None` if it is not a memory fault.
pub fn from_event(event: &hsa_amd_event_t) -> Option<FaultCause> {
    if event.event_type != HSA_AMD_GPU_MEMORY_FAULT_EVENT {
        return None;
    }
    let fault = &event.memory_fault;
    let writes = fault.fault_reason_mask & HSA_AMD_MEMORY_FAULT_READ_ONLY != 0;
    let access = if writes { AccessKind::Write } else { AccessKind::Read };
    let address = Address(fault.virtual_address);
    Some(FaultCause::MemoryViolation { address, access, lane: None })
}

/// Converts the status of a stopped queue; `None` if the status is not a fault of its dispatch.
pub fn from_status(status: hsa_status_t) -> Option<FaultCause> {
    let unknown_address =
        FaultCause::MemoryViolation { address: Address(0), access: AccessKind::Read, lane: None };
    Some(match status {
        HSA_STATUS_ERROR_MEMORY_FAULT | HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION => {
            unknown_address
        }
        HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION => FaultCause::IllegalInstruction { word: 0 },
        // The runtime's trap handler stops the queue for the ABI's abort.
        HSA_STATUS_ERROR_EXCEPTION => FaultCause::Trap { id: 2 },
        _ => return None,
    })
}
