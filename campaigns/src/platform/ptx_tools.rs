//! Tools in PTX modules.

use super::tools::{ToolMethod, ToolRun, other_machine};
use flipwave_device::{Address, Completion, DeviceError, Dispatch, ModuleId};
use flipwave_emulator::PtxEmulator;
use flipwave_injector::Workload;
use flipwave_machine::{Execution, Machine, Unobserved};
use flipwave_ptx::{Module, Ptx};
use flipwave_ptx_hooks::{PtxHookCompiler, Rewritten};
use flipwave_ptx_sim::{Inserted, PtxGpu};
use flipwave_tools::{Measurement, PtxDevice, PtxReplacer, ToolError, measure_ptx};

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

impl PtxDevice for PtxWorkload<'_> {
    fn target(&self) -> &Ptx {
        &self.target
    }

    fn module(&self, module: ModuleId) -> Option<&Module> {
        self.gpu.program(module).map(|program| &*program.module)
    }

    fn load(&mut self, original: ModuleId, rewritten: &Rewritten) -> Result<ModuleId, DeviceError> {
        let Rewritten { module, origins, .. } = rewritten;
        self.gpu.load_rewritten(original, module, origins, Inserted::Counted)
    }

    fn variable(&self, module: ModuleId, name: &str) -> Option<(Address, u64)> {
        self.gpu.variable(module, name)
    }

    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.gpu.read(address, bytes)
    }

    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        self.gpu.write(address, bytes)
    }

    fn dispatch(
        &mut self,
        dispatch: &Dispatch,
        between: &mut dyn FnMut(&mut Self) -> Result<(), DeviceError>,
    ) -> Result<Completion, DeviceError> {
        let mut execution = self.gpu.begin(dispatch)?;
        let workload = self.workload;
        let advance = |execution: &mut Execution, until: u64| {
            let slice = execution.statistics().wave_instructions.saturating_add(ATTENDED_SLICE);
            let progress = self.gpu.advance(execution, &mut Unobserved, until.min(slice))?;
            between(self)?;
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
