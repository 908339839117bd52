//! Error codes of the driver and of the runtime (CUDA Driver API, "CUresult"; CUDA Runtime API, "cudaError").

use flipwave_device::{DeviceError, FaultCause, FaultClass};

/// Codes that only the runtime returns.
const OF_RUNTIME: [Status; 5] = [
    Status::INVALID_CONFIGURATION,
    Status::INVALID_SYMBOL,
    Status::INVALID_MEMCPY_DIRECTION,
    Status::MISSING_CONFIGURATION,
    Status::INVALID_DEVICE_FUNCTION,
];

/// Defines errors: name in the driver API without `CUDA_ERROR_`, code, name in the runtime API without `cudaError`,
/// and description.
macro_rules! statuses {
    ($($constant:ident = $code:literal, $runtime:literal, $text:literal;)*) => {
        /// The result of a call that failed. The driver and the runtime use the same codes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Status(pub i32);

        #[allow(missing_docs, dead_code, reason = "the codes of the documentation")]
        impl Status {
            $(pub const $constant: Status = Status($code);)*

            /// Name in the driver API, with the final zero; `None` for unknown codes and for codes of the
            /// runtime alone.
            pub fn driver_name(self) -> Option<&'static str> {
                match self.0 {
                    0 => Some("CUDA_SUCCESS\0"),
                    $($code => Some(concat!("CUDA_ERROR_", stringify!($constant), "\0")),)*
                    _ => None,
                }
                .filter(|_| !OF_RUNTIME.contains(&self))
            }

            /// Name in the runtime API, with the final zero.
            pub fn runtime_name(self) -> &'static str {
                match self.0 {
                    0 => "cudaSuccess\0",
                    $($code => concat!("cudaError", $runtime, "\0"),)*
                    _ => "unrecognized error code\0",
                }
            }

            /// Description, with the final zero; `None` for unknown codes.
            pub fn description(self) -> Option<&'static str> {
                match self.0 {
                    0 => Some("no error\0"),
                    $($code => Some(concat!($text, "\0")),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    INVALID_VALUE = 1, "InvalidValue", "invalid argument";
    OUT_OF_MEMORY = 2, "MemoryAllocation", "out of memory";
    NOT_INITIALIZED = 3, "InitializationError", "initialization error";
    DEINITIALIZED = 4, "CudartUnloading", "driver shutting down";
    INVALID_CONFIGURATION = 9, "InvalidConfiguration", "invalid configuration argument";
    INVALID_SYMBOL = 13, "InvalidSymbol", "invalid device symbol";
    INVALID_MEMCPY_DIRECTION = 21, "InvalidMemcpyDirection", "invalid copy direction for memcpy";
    MISSING_CONFIGURATION = 52, "MissingConfiguration", "__global__ function call is not configured";
    INVALID_DEVICE_FUNCTION = 98, "InvalidDeviceFunction", "invalid device function";
    NO_DEVICE = 100, "NoDevice", "no CUDA-capable device is detected";
    INVALID_DEVICE = 101, "InvalidDevice", "invalid device ordinal";
    INVALID_IMAGE = 200, "InvalidKernelImage", "device kernel image is invalid";
    INVALID_CONTEXT = 201, "DeviceUninitialized", "invalid device context";
    NO_BINARY_FOR_GPU = 209, "NoKernelImageForDevice", "no kernel image is available for execution on the device";
    INVALID_PTX = 218, "InvalidPtx", "a PTX JIT compilation failed";
    INVALID_SOURCE = 300, "InvalidSource", "device kernel image is invalid";
    FILE_NOT_FOUND = 301, "FileNotFound", "file not found";
    INVALID_HANDLE = 400, "InvalidResourceHandle", "invalid resource handle";
    NOT_FOUND = 500, "SymbolNotFound", "named symbol not found";
    NOT_READY = 600, "NotReady", "device not ready";
    ILLEGAL_ADDRESS = 700, "IllegalAddress", "an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701, "LaunchOutOfResources", "too many resources requested for launch";
    LAUNCH_TIMEOUT = 702, "LaunchTimeout", "the launch timed out and was terminated";
    PEER_ACCESS_ALREADY_ENABLED = 704, "PeerAccessAlreadyEnabled", "peer access is already enabled";
    PEER_ACCESS_NOT_ENABLED = 705, "PeerAccessNotEnabled", "peer access has not been enabled";
    PRIMARY_CONTEXT_ACTIVE = 708, "SetOnActiveProcess", "cannot set while device is active in this process";
    CONTEXT_IS_DESTROYED = 709, "ContextIsDestroyed", "context is destroyed";
    ASSERT = 710, "Assert", "device-side assert triggered";
    HOST_MEMORY_ALREADY_REGISTERED = 712, "HostMemoryAlreadyRegistered", "part or all of the requested memory range is already mapped";
    HOST_MEMORY_NOT_REGISTERED = 713, "HostMemoryNotRegistered", "pointer does not correspond to a registered memory region";
    ILLEGAL_INSTRUCTION = 715, "IllegalInstruction", "an illegal instruction was encountered";
    MISALIGNED_ADDRESS = 716, "MisalignedAddress", "misaligned address";
    INVALID_PC = 718, "InvalidPc", "invalid program counter";
    LAUNCH_FAILED = 719, "LaunchFailure", "unspecified launch failure";
    COOPERATIVE_LAUNCH_TOO_LARGE = 720, "CooperativeLaunchTooLarge", "too many blocks in cooperative launch";
    NOT_PERMITTED = 800, "NotPermitted", "operation not permitted";
    NOT_SUPPORTED = 801, "NotSupported", "operation not supported";
    STREAM_CAPTURE_UNSUPPORTED = 900, "StreamCaptureUnsupported", "operation not permitted when stream is capturing";
    STREAM_CAPTURE_INVALIDATED = 901, "StreamCaptureInvalidated", "operation failed due to a previous error during capture";
    STREAM_CAPTURE_UNMATCHED = 903, "StreamCaptureUnmatched", "capture was not ended in the same stream as it began";
    UNKNOWN = 999, "Unknown", "unknown error";
}

impl Status {
    /// Returns `true` if the error belongs to the context, so that all later calls return it.
    pub fn is_sticky(self) -> bool {
        (700..720).contains(&self.0)
            && !matches!(
                self,
                Status::LAUNCH_OUT_OF_RESOURCES
                    | Status::PEER_ACCESS_ALREADY_ENABLED
                    | Status::PEER_ACCESS_NOT_ENABLED
                    | Status::PRIMARY_CONTEXT_ACTIVE
                    | Status::CONTEXT_IS_DESTROYED
                    | Status::HOST_MEMORY_ALREADY_REGISTERED
                    | Status::HOST_MEMORY_NOT_REGISTERED
            )
    }

    /// The code with which the driver reports a device fault.
    pub fn of_fault(cause: &FaultCause) -> Status {
        match cause {
            FaultCause::MemoryViolation { access: flipwave_device::AccessKind::Fetch, .. } => {
                Status::INVALID_PC
            }
            FaultCause::Watchdog { .. } | FaultCause::Stalled(_) => Status::LAUNCH_TIMEOUT,
            cause => match cause.class() {
                FaultClass::Access => Status::ILLEGAL_ADDRESS,
                FaultClass::Alignment => Status::MISALIGNED_ADDRESS,
                FaultClass::Instruction => Status::ILLEGAL_INSTRUCTION,
                FaultClass::Exception | FaultClass::Gap => Status::LAUNCH_FAILED,
            },
        }
    }
}

impl From<&DeviceError> for Status {
    fn from(error: &DeviceError) -> Status {
        match error {
            DeviceError::OutOfMemory { .. } | DeviceError::Occupied { .. } => Status::OUT_OF_MEMORY,
            DeviceError::Load(_) => Status::INVALID_PTX,
            DeviceError::UnknownKernel { .. } => Status::NOT_FOUND,
            DeviceError::NotAllocated { .. } | DeviceError::BadLaunch { .. } => {
                Status::INVALID_VALUE
            }
            _ => Status::UNKNOWN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_runtime_have_no_name_in_the_driver() {
        assert_eq!(Status::ILLEGAL_ADDRESS.driver_name(), Some("CUDA_ERROR_ILLEGAL_ADDRESS\0"));
        assert_eq!(Status::INVALID_SYMBOL.driver_name(), None);
        assert_eq!(Status(12345).driver_name(), None);
        assert_eq!(Status::INVALID_SYMBOL.runtime_name(), "cudaErrorInvalidSymbol\0");
    }

    #[test]
    fn only_faults_are_sticky() {
        assert!(Status::ASSERT.is_sticky() && Status::LAUNCH_TIMEOUT.is_sticky());
        assert!(!Status::INVALID_VALUE.is_sticky() && !Status::LAUNCH_OUT_OF_RESOURCES.is_sticky());
    }
}
