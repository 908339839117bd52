//! Instrumentation tools.

use crate::error::CampaignError;
use flipwave_device::Dispatch;
use flipwave_emulator::Instruction;
use flipwave_injector::Workload;
use flipwave_tools::{Measurement, Options, ToolFile};

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
    /// [`CampaignError::Tool`].
    fn measure(&self, run: &ToolRun<'_>) -> Result<Measurement, CampaignError>;
}
