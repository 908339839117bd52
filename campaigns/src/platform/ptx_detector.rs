//! Detectors in PTX modules.

use super::detector::{DetectorCounter, DetectorMethod, LoadedDetector};
use super::other_platform::OtherPlatformError;
use crate::program::error::{DetectorError, PrepareError};
use flipwave_device::ModuleId;
use flipwave_injector::Workload;
use flipwave_machine::Simulator;
use flipwave_ptx::Ptx;
use flipwave_ptx_hooks::PtxHookCompiler;
use flipwave_ptx_sim::{Inserted, PtxGpu};
use flipwave_tools::{Options, PtxTool, Tool, ToolFile, refusal_reasons};

/// A detector in PTX modules.
pub(super) struct PtxDetector {
    tool: PtxTool,
}

impl PtxDetector {
    /// Starts a tool for the code that a workload dispatches.
    pub fn start(file: &ToolFile, workload: &Workload) -> Result<PtxDetector, PrepareError> {
        let target: &Ptx = workload
            .architecture()
            .as_any()
            .downcast_ref()
            .ok_or_else(|| other_platform(&workload.device))?;
        let tool = PtxTool::start(file, &Options::default(), &PtxHookCompiler::default(), target);
        Ok(PtxDetector { tool: tool.map_err(DetectorError::Tool)? })
    }
}

fn other_platform(machine: &Simulator) -> OtherPlatformError {
    OtherPlatformError { target: machine.architecture().target().to_owned() }
}

impl DetectorMethod for PtxDetector {
    fn tool(&self) -> &Tool {
        &self.tool.tool
    }

    fn load(
        &self,
        machine: &mut Simulator,
        module: ModuleId,
    ) -> Result<LoadedDetector, PrepareError> {
        let other = other_platform(machine);
        let gpu: &mut PtxGpu = machine.downcast_mut().ok_or(other.clone())?;
        let original = &gpu.program(module).ok_or(other)?.module;
        let code = self
            .tool
            .instrument(original, &Options::default(), None)
            .map_err(DetectorError::Tool)?;
        if !code.refused.is_empty() {
            let reasons = refusal_reasons(&code.refused).join("; ");
            let file = self.tool().file().name.clone();
            return Err(DetectorError::Refused { file, reasons }.into());
        }
        let (rewritten, origins) = (&code.rewritten.module, &code.rewritten.origins);
        let module = gpu.load_rewritten(module, rewritten, origins, Inserted::Counted)?;
        let counter = |name: &str| {
            let (address, bytes) = gpu.variable(module, code.symbol(name)?)?;
            let (name, bytes) = (name.to_owned(), bytes as usize);
            Some(DetectorCounter { name, address, bytes })
        };
        let counters = self.tool().detectors().filter_map(counter).collect();
        Ok(LoadedDetector { module, counters })
    }
}
