//! Tools in PTX modules.

use super::detector::DetectorMethod;
use super::ptx_detector::PtxDetector;
use super::tools::{ToolMethod, ToolRun, other_machine};
use crate::program::error::PrepareError;
use flipwave_device::{Completion, DeviceError, Dispatch};
use flipwave_emulator::PtxEmulator;
use flipwave_injector::Workload;
use flipwave_machine::{Execution, Machine, Unobserved};
use flipwave_ptx::Ptx;
use flipwave_ptx_hooks::PtxHookCompiler;
use flipwave_ptx_sim::PtxGpu;
use flipwave_tools::{Measurement, PtxReplacer, PtxRunner, ToolError, ToolFile, measure_ptx};

/// Tools in PTX modules.
pub(super) struct PtxTools;

impl ToolMethod for PtxTools {
    /// The tool sees an emulated instruction as a single instruction.
    fn measure(&self, run: &ToolRun<'_>) -> Result<Measurement, Box<ToolError>> {
        let ToolRun { workload, dispatches, instructions, file, options } = *run;
        let architecture = workload.device.architecture().clone();
        let gpu: &PtxGpu = workload.device.downcast().ok_or_else(other_machine)?;
        let target: &Ptx = architecture.as_any().downcast_ref().ok_or_else(other_machine)?;
        let mut gpu = gpu.clone();
        workload.program.changes.apply(0, &mut gpu).map_err(ToolError::from)?;
        let mut device = PtxWorkload { gpu, target: target.clone(), workload, completed: 0 };
        let compiler = PtxHookCompiler::default();
        let emulator = PtxEmulator { instructions, target, compiler: &compiler };
        let replacer = (!instructions.is_empty()).then_some(&emulator as &dyn PtxReplacer);
        Ok(measure_ptx(&mut device, dispatches, file, options, &compiler, replacer)?)
    }

    fn detector(
        &self,
        file: &ToolFile,
        workload: &Workload,
    ) -> Result<Box<dyn DetectorMethod>, PrepareError> {
        Ok(Box::new(PtxDetector::start(file, workload)?))
    }
}

/// Number of wave instructions after which the host takes records.
const ATTENDED_SLICE: u64 = 1 << 12;

/// A GPU that runs the dispatches of a workload, in their order. Dispatches can be cancelled. Between them, the
/// GPU's memory changes as in the workload.
struct PtxWorkload<'a> {
    gpu: PtxGpu,
    target: Ptx,
    workload: &'a Workload,
    /// Number of completed dispatches.
    completed: usize,
}

impl PtxRunner for PtxWorkload<'_> {
    type Device = PtxGpu;

    fn target(&self) -> &Ptx {
        &self.target
    }

    fn device(&mut self) -> &mut PtxGpu {
        &mut self.gpu
    }

    fn dispatch(
        &mut self,
        dispatch: &Dispatch,
        between: &mut dyn FnMut(&mut PtxGpu) -> Result<(), DeviceError>,
    ) -> Result<Completion, DeviceError> {
        let mut execution = self.gpu.begin(dispatch)?;
        let workload = self.workload;
        let advance = |execution: &mut Execution, until: u64| {
            let slice = execution.statistics().wave_instructions.saturating_add(ATTENDED_SLICE);
            let progress = self.gpu.advance(execution, &mut Unobserved, until.min(slice))?;
            between(&mut self.gpu)?;
            Ok(progress)
        };
        let completion =
            workload.cancellation.run_to_end(&dispatch.kernel, &mut execution, advance)?;
        if let Completion::Completed(_) = completion {
            self.completed += 1;
            workload.program.changes.apply(self.completed, &mut self.gpu)?;
        }
        Ok(completion)
    }
}
