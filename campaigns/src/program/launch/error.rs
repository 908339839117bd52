//! Errors of launches on this machine's GPU.

use crate::program::error::PrepareError;
use flipwave_cuda_driver::TargetError;
use flipwave_device::{DeviceFault, demangled_kernel};
use flipwave_rocr::OpenError;

/// Errors returned when kernels cannot be run on this machine's GPU.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The device cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// NVIDIA's driver cannot be opened.
    #[error(transparent)]
    OpenCuda(#[from] flipwave_cuda_driver::OpenError),
    /// The GPU of NVIDIA's driver cannot execute the campaign's target.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The program cannot be loaded, or a launch is invalid.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The campaign that started this process has passed an invalid fault.
    #[error("{0}")]
    Injection(String),
    /// The device differs from the campaign's target.
    #[error("the GPU is a {found}, but the campaign's target is {wanted}")]
    OtherTarget {
        /// Target of the campaign.
        wanted: String,
        /// Target of the device.
        found: String,
    },
    /// The device stopped a dispatch.
    #[error(
        "dispatch {dispatch} (kernel `{}`) was stopped: {}",
        demangled_kernel(kernel),
        fault.report(None)
    )]
    Faulted {
        /// Index of the dispatch.
        dispatch: usize,
        /// Name of the kernel.
        kernel: String,
        /// Cause.
        fault: Box<DeviceFault>,
    },
}
