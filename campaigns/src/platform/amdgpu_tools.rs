//! Tools in AMD's code.

use super::amdgpu;
use super::tools::{ToolMethod, ToolRun};
use crate::error::CampaignError;
use crate::program::cancellable::CancellableDevice;
use flipwave_emulator::Emulator;
use flipwave_hooks::hook::HookCompiler;
use flipwave_tools::{Measurement, Replacer, ToolError, measure_with};

/// Tools in AMD's code.
pub(super) struct AmdgpuTools;

impl ToolMethod for AmdgpuTools {
    /// The tool sees an emulated instruction as a single instruction.
    fn measure(&self, run: &ToolRun<'_>) -> Result<Measurement, CampaignError> {
        let ToolRun { workload, dispatches, instructions, file, options } = *run;
        let gpu = amdgpu(&workload.device)?;
        let mut device = gpu.clone();
        let device = CancellableDevice::new(&mut device, workload);
        let mut device = device.map_err(|error| Box::new(ToolError::from(error)))?;
        let compiler = HookCompiler::find().map_err(|error| Box::new(ToolError::Hook(error)))?;
        let code_of = |module| gpu.code_object(module);
        let emulator = Emulator { instructions, compiler: &compiler };
        let replacer = (!instructions.is_empty()).then_some(&emulator as &dyn Replacer);
        let measurement =
            measure_with(&mut device, code_of, dispatches, file, options, &compiler, replacer);
        Ok(measurement.map_err(Box::new)?)
    }
}
