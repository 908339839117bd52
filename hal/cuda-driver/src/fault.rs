//! Device faults in the driver's errors.

use flipwave_device::{AccessKind, Address, FaultCause};

/// Converts the error with which a kernel ended; `None` if the code is not an exception of the device (CUDA Driver
/// API, "CUresult"). The driver reports neither address nor instruction.
pub fn cause(code: i32) -> Option<FaultCause> {
    let memory =
        FaultCause::MemoryViolation { address: Address(0), access: AccessKind::Read, lane: None };
    Some(match code {
        // CUDA_ERROR_ILLEGAL_ADDRESS, _HARDWARE_STACK_ERROR, _INVALID_ADDRESS_SPACE.
        700 | 714 | 717 => memory,
        // CUDA_ERROR_LAUNCH_TIMEOUT.
        702 => FaultCause::Watchdog { executed: 0 },
        // CUDA_ERROR_ILLEGAL_INSTRUCTION, _INVALID_PC.
        715 | 718 => FaultCause::IllegalInstruction { word: 0 },
        // CUDA_ERROR_MISALIGNED_ADDRESS.
        716 => FaultCause::Misaligned { address: Address(0), alignment: 0, lane: None },
        // CUDA_ERROR_ASSERT, _LAUNCH_FAILED.
        710 | 719 => FaultCause::Trap { id: 2 },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_device::FaultKind;

    #[test]
    fn exceptions_have_a_cause_and_other_errors_do_not() {
        let kind = |code| cause(code).map(|cause| cause.kind());
        for (code, expected) in [
            (700, FaultKind::MemoryViolation),
            (702, FaultKind::Watchdog),
            (710, FaultKind::Trap),
            (714, FaultKind::MemoryViolation),
            (715, FaultKind::IllegalInstruction),
            (716, FaultKind::Misaligned),
            (717, FaultKind::MemoryViolation),
            (718, FaultKind::IllegalInstruction),
            (719, FaultKind::Trap),
        ] {
            assert_eq!(kind(code), Some(expected), "{code}");
        }
        for code in [0, 1, 2, 100, 214, 600, 701, 704, 708, 709, 712, 720, 999] {
            assert_eq!(kind(code), None, "{code}");
        }
    }
}
