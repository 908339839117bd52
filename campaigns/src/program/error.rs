//! Errors of preparing a campaign's program.

use crate::platform::other_platform::OtherPlatformError;
use crate::program::compile::CompileError;
use crate::program::object_file::ObjectFileError;
use flipwave_device::DeviceError;
use flipwave_tools::ToolError;
use std::error::Error;
use std::path::PathBuf;

/// Errors returned when a campaign's program cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The workload is an application or a capture, but kernels and buffers are required.
    #[error(
        "the workload is an application or a capture; this command requires a workload of kernels, \
         `kernel` or `dispatches`"
    )]
    Application,
    /// A source cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A file contains no usable code object.
    #[error(transparent)]
    ObjectFile(#[from] ObjectFileError),
    /// The device cannot load a code object.
    #[error("{}: {reason}", path.display())]
    Load {
        /// The source or code object.
        path: PathBuf,
        /// Cause.
        reason: DeviceError,
    },
    /// A kernel does not exist.
    #[error("{} has no kernel `{wanted}`; {}", path.display(), kernel_list(present))]
    UnknownKernel {
        /// The source or code object.
        path: PathBuf,
        /// Name of the kernel.
        wanted: String,
        /// Names of the existing kernels.
        present: Vec<String>,
    },
    /// The arguments do not match the kernel.
    #[error("launch {launch}: {reason}")]
    Arguments {
        /// Index of the launch, from 0.
        launch: usize,
        /// Cause.
        reason: Box<dyn Error + Send + Sync>,
    },
    /// A buffer cannot be filled.
    #[error("buffer `{buffer}`: {reason}")]
    Buffer {
        /// The buffer.
        buffer: String,
        /// Cause.
        reason: String,
    },
    /// The detector cannot be inserted.
    #[error("`detector`: {0}")]
    Detector(#[from] DetectorError),
    /// The device rejected a request.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The target has another instruction set than the command needs.
    #[error(transparent)]
    OtherPlatform(#[from] OtherPlatformError),
}

/// Errors returned when a detector cannot be inserted into a program.
#[derive(Debug, thiserror::Error)]
pub enum DetectorError {
    /// The tool failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The tool declares no detector.
    #[error("{file} declares no detector; declare one with FLIPWAVE_DETECTOR")]
    NoDetector {
        /// The tool.
        file: String,
    },
    /// The engine refused hooks, so that the detector would miss faults.
    #[error("{file}: cannot insert all hooks; {reasons}")]
    Refused {
        /// The tool.
        file: String,
        /// The instructions, and the reasons.
        reasons: String,
    },
}

fn kernel_list(present: &[String]) -> String {
    match present {
        [] => "it has no kernels".to_owned(),
        names => format!("it has: {}", names.join(", ")),
    }
}
