//! Tools in AMD's code.

use super::amdgpu_detector::AmdgpuDetector;
use super::detector::DetectorMethod;
use super::tools::{ToolMethod, ToolRun, other_machine};
use crate::program::cancellable::CancellableDevice;
use crate::program::error::PrepareError;
use flipwave_emulator::Emulator;
use flipwave_hooks::hook::HookCompiler;
use flipwave_injector::Workload;
use flipwave_sim::EmbeddedGpu;
use flipwave_tools::{Measurement, Replacer, ToolError, ToolFile, measure_with};

/// Tools in AMD's code.
pub(super) struct AmdgpuTools;

impl ToolMethod for AmdgpuTools {
    /// The tool sees an emulated instruction as a single instruction.
    fn measure(&self, run: &ToolRun<'_>) -> Result<Measurement, Box<ToolError>> {
        let ToolRun { workload, dispatches, instructions, file, options } = *run;
        let gpu: &EmbeddedGpu = workload.device.downcast().ok_or_else(other_machine)?;
        let mut device = gpu.clone();
        let mut device = CancellableDevice::new(&mut device, workload).map_err(ToolError::from)?;
        let compiler = HookCompiler::find().map_err(ToolError::from)?;
        let code_of = |module| gpu.code_object(module);
        let emulator = Emulator { instructions, compiler: &compiler };
        let replacer = (!instructions.is_empty()).then_some(&emulator as &dyn Replacer);
        let measurement =
            measure_with(&mut device, code_of, dispatches, file, options, &compiler, replacer);
        Ok(measurement?)
    }

    fn detector(
        &self,
        file: &ToolFile,
        workload: &Workload,
    ) -> Result<Box<dyn DetectorMethod>, PrepareError> {
        Ok(Box::new(AmdgpuDetector::start(file, workload)?))
    }
}
