//! Instrumentation tools.

use super::detector::DetectorMethod;
use crate::program::error::PrepareError;
use flipwave_device::{DeviceError, Dispatch};
use flipwave_emulator::Instruction;
use flipwave_injector::Workload;
use flipwave_tools::{Measurement, Options, ToolError, ToolFile};

/// A run of a workload with a tool.
pub struct ToolRun<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// Its dispatches, with limits for code with hooks.
    pub dispatches: &'a [Dispatch],
    /// Instructions of the code to emulate.
    pub instructions: &'a [Instruction],
    /// The tool.
    pub file: &'a ToolFile,
    /// Its options.
    pub options: &'a Options,
}

/// Runs tools on the simulated GPUs of a platform.
pub trait ToolMethod {
    /// Executes a run.
    ///
    /// # Errors
    /// [`ToolError`].
    fn measure(&self, run: &ToolRun<'_>) -> Result<Measurement, Box<ToolError>>;

    /// Starts a tool as the detector of a workload.
    ///
    /// # Errors
    /// [`PrepareError`] if the tool cannot be compiled or started.
    fn detector(
        &self,
        file: &ToolFile,
        workload: &Workload,
    ) -> Result<Box<dyn DetectorMethod>, PrepareError>;
}

/// The error for a machine of another platform.
pub(super) fn other_machine() -> ToolError {
    ToolError::Device(DeviceError::Internal("the machine belongs to another platform".to_owned()))
}
