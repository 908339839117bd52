//! Error codes of the driver and of the runtime (CUDA Driver API, "CUresult"; CUDA Runtime API, "cudaError").

use flipwave_device::{DeviceError, FaultCause, FaultClass};

macro_rules! statuses {
    ($($constant:ident = $code:literal, $driver:literal, $runtime:literal, $text:literal;)*) => {
        /// The result of a call that failed. The driver and the runtime use the same codes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Status(pub i32);

        #[allow(missing_docs, dead_code, reason = "the codes of the documentation")]
        impl Status {
            $(pub const $constant: Status = Status($code);)*

            /// Name in the driver API, with the final zero; `None` for unknown codes and for codes of the
            /// runtime alone.
            pub fn driver_name(self) -> Option<&'static str> {
                match self.0 { $($code => Some(concat!($driver, "\0")),)* _ => None }
                    .filter(|name| name.len() > 1)
            }

            /// Name in the runtime API, with the final zero.
            pub fn runtime_name(self) -> &'static str {
                match self.0 {
                    $($code => concat!($runtime, "\0"),)*
                    _ => "unrecognized error code\0",
                }
            }

            /// Description, with the final zero; `None` for unknown codes.
            pub fn description(self) -> Option<&'static str> {
                match self.0 { $($code => Some(concat!($text, "\0")),)* _ => None }
            }
        }
    };
}

statuses! {
    SUCCESS = 0, "CUDA_SUCCESS", "cudaSuccess", "no error";
    INVALID_VALUE = 1, "CUDA_ERROR_INVALID_VALUE", "cudaErrorInvalidValue", "invalid argument";
    OUT_OF_MEMORY = 2, "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "out of memory";
    NOT_INITIALIZED = 3, "CUDA_ERROR_NOT_INITIALIZED", "cudaErrorInitializationError", "initialization error";
    DEINITIALIZED = 4, "CUDA_ERROR_DEINITIALIZED", "cudaErrorCudartUnloading", "driver shutting down";
    INVALID_CONFIGURATION = 9, "", "cudaErrorInvalidConfiguration", "invalid configuration argument";
    INVALID_SYMBOL = 13, "", "cudaErrorInvalidSymbol", "invalid device symbol";
    INVALID_MEMCPY_DIRECTION = 21, "", "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy";
    MISSING_CONFIGURATION = 52, "", "cudaErrorMissingConfiguration", "__global__ function call is not configured";
    INVALID_DEVICE_FUNCTION = 98, "", "cudaErrorInvalidDeviceFunction", "invalid device function";
    NO_DEVICE = 100, "CUDA_ERROR_NO_DEVICE", "cudaErrorNoDevice", "no CUDA-capable device is detected";
    INVALID_DEVICE = 101, "CUDA_ERROR_INVALID_DEVICE", "cudaErrorInvalidDevice", "invalid device ordinal";
    INVALID_IMAGE = 200, "CUDA_ERROR_INVALID_IMAGE", "cudaErrorInvalidKernelImage", "device kernel image is invalid";
    INVALID_CONTEXT = 201, "CUDA_ERROR_INVALID_CONTEXT", "cudaErrorDeviceUninitialized", "invalid device context";
    NO_BINARY_FOR_GPU = 209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "cudaErrorNoKernelImageForDevice", "no kernel image is available for execution on the device";
    INVALID_PTX = 218, "CUDA_ERROR_INVALID_PTX", "cudaErrorInvalidPtx", "a PTX JIT compilation failed";
    INVALID_SOURCE = 300, "CUDA_ERROR_INVALID_SOURCE", "cudaErrorInvalidSource", "device kernel image is invalid";
    FILE_NOT_FOUND = 301, "CUDA_ERROR_FILE_NOT_FOUND", "cudaErrorFileNotFound", "file not found";
    INVALID_HANDLE = 400, "CUDA_ERROR_INVALID_HANDLE", "cudaErrorInvalidResourceHandle", "invalid resource handle";
    NOT_FOUND = 500, "CUDA_ERROR_NOT_FOUND", "cudaErrorSymbolNotFound", "named symbol not found";
    NOT_READY = 600, "CUDA_ERROR_NOT_READY", "cudaErrorNotReady", "device not ready";
    ILLEGAL_ADDRESS = 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress", "an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "cudaErrorLaunchOutOfResources", "too many resources requested for launch";
    LAUNCH_TIMEOUT = 702, "CUDA_ERROR_LAUNCH_TIMEOUT", "cudaErrorLaunchTimeout", "the launch timed out and was terminated";
    PEER_ACCESS_ALREADY_ENABLED = 704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled";
    PEER_ACCESS_NOT_ENABLED = 705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled";
    PRIMARY_CONTEXT_ACTIVE = 708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "cudaErrorSetOnActiveProcess", "cannot set while device is active in this process";
    CONTEXT_IS_DESTROYED = 709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "cudaErrorContextIsDestroyed", "context is destroyed";
    ASSERT = 710, "CUDA_ERROR_ASSERT", "cudaErrorAssert", "device-side assert triggered";
    HOST_MEMORY_ALREADY_REGISTERED = 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "cudaErrorHostMemoryAlreadyRegistered", "part or all of the requested memory range is already mapped";
    HOST_MEMORY_NOT_REGISTERED = 713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "cudaErrorHostMemoryNotRegistered", "pointer does not correspond to a registered memory region";
    ILLEGAL_INSTRUCTION = 715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "cudaErrorIllegalInstruction", "an illegal instruction was encountered";
    MISALIGNED_ADDRESS = 716, "CUDA_ERROR_MISALIGNED_ADDRESS", "cudaErrorMisalignedAddress", "misaligned address";
    INVALID_PC = 718, "CUDA_ERROR_INVALID_PC", "cudaErrorInvalidPc", "invalid program counter";
    LAUNCH_FAILED = 719, "CUDA_ERROR_LAUNCH_FAILED", "cudaErrorLaunchFailure", "unspecified launch failure";
    COOPERATIVE_LAUNCH_TOO_LARGE = 720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch";
    NOT_PERMITTED = 800, "CUDA_ERROR_NOT_PERMITTED", "cudaErrorNotPermitted", "operation not permitted";
    NOT_SUPPORTED = 801, "CUDA_ERROR_NOT_SUPPORTED", "cudaErrorNotSupported", "operation not supported";
    STREAM_CAPTURE_UNSUPPORTED = 900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing";
    STREAM_CAPTURE_INVALIDATED = 901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture";
    STREAM_CAPTURE_UNMATCHED = 903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "cudaErrorStreamCaptureUnmatched", "capture was not ended in the same stream as it began";
    UNKNOWN = 999, "CUDA_ERROR_UNKNOWN", "cudaErrorUnknown", "unknown error";
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
