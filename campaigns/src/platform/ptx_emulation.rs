//! Emulated instructions in PTX modules.

use super::emulation::{
    EmulatedDispatch, EmulatedRun, EmulationError, EmulationMethod, ExecutedProxy, Matches,
};
use super::other_platform::OtherPlatformError;
use flipwave_arch::{Architecture, SourceLines};
use flipwave_device::{ModuleId, WaveId};
use flipwave_emulator::{EmulateError, Instruction, PtxScan};
use flipwave_injector::Workload;
use flipwave_machine::{Executed, Observer, Simulator, Watch, WaveState};
use flipwave_ptx::{CallGraph, Code, Ptx};
use flipwave_ptx_hooks::{Instrumentation, PtxHookCompiler};
use flipwave_ptx_sim::{Inserted, PtxGpu};
use flipwave_tools::ToolError;
use std::collections::BTreeMap;

/// Emulated instructions in PTX modules.
pub(super) struct PtxEmulation {
    target: Ptx,
}

/// Proxies of a module.
struct Proxies {
    code: Code,
    /// Names of the emulated instructions by number of the proxy.
    names: BTreeMap<usize, String>,
}

impl PtxEmulation {
    /// Emulation in modules for `target`.
    pub fn new(target: Ptx) -> PtxEmulation {
        PtxEmulation { target }
    }

    /// Replaces the code of a workload. Returns the proxies by number of the new module.
    fn replace(
        &self,
        instructions: &[Instruction],
        workload: &mut Workload,
    ) -> Result<BTreeMap<u32, Proxies>, EmulationError> {
        let compiler = PtxHookCompiler::default();
        let mut loaded: BTreeMap<u32, ModuleId> = BTreeMap::new();
        let mut found = BTreeMap::new();
        let mut matches = Matches::default();
        let other = || OtherPlatformError { target: self.target.target().to_owned() };
        for index in 0..workload.program.dispatches.len() {
            let original = workload.program.dispatches[index].module;
            if let Some(emulated) = loaded.get(&original.0) {
                workload.program.dispatches[index].module = *emulated;
                continue;
            }
            let gpu: &mut PtxGpu = workload.device.downcast_mut().ok_or_else(other)?;
            let Some(module) = gpu.program(original).map(|program| program.module.clone()) else {
                continue;
            };
            let (emulated, proxies) = self
                .replace_proxies(instructions, &module, &compiler, &mut matches)
                .map_err(Box::new)?;
            let Emulated { rewritten, insts } = emulated;
            let emulated = gpu
                .load_emulating(
                    original,
                    &rewritten.module,
                    &rewritten.origins,
                    Inserted::Free,
                    &insts,
                )
                .map_err(|error| Box::new(ToolError::Device(error)))?;
            loaded.insert(original.0, emulated);
            found.insert(emulated.0, proxies);
            workload.program.dispatches[index].module = emulated;
        }
        matches.check(instructions).map_err(Box::new)?;
        Ok(found)
    }

    fn replace_proxies(
        &self,
        instructions: &[Instruction],
        module: &flipwave_ptx::Module,
        compiler: &PtxHookCompiler,
        matches: &mut Matches,
    ) -> Result<(Emulated, Proxies), EmulateError> {
        let invalid = |error| EmulateError::PtxRewrite(Box::new(error));
        let mut instrumentation = Instrumentation::new(module).map_err(invalid)?;
        let code = instrumentation.code().clone();
        let scan = PtxScan::new(module, &code, &self.target, instructions, compiler)?;
        let found = scan.proxies().map(|proxy| proxy.instruction);
        matches.add(instructions, found, |name| scan.closest_match(name).cloned());
        scan.replace(&mut instrumentation)?;
        let rewritten = instrumentation.rewrite().map_err(invalid)?;
        let insts = scan.emulated_insts(&code);
        let proxies = scan.proxies();
        let names = proxies.map(|proxy| (proxy.number, proxy.instruction.name.clone())).collect();
        Ok((Emulated { rewritten, insts }, Proxies { code, names }))
    }
}

/// A module with hooks in place of proxies.
struct Emulated {
    rewritten: flipwave_ptx_hooks::Rewritten,
    /// Emulated instructions by number of the proxy.
    insts: BTreeMap<usize, flipwave_ptx::EmulatedInst>,
}

impl EmulationMethod for PtxEmulation {
    fn install(
        &self,
        instructions: &[Instruction],
        workload: &mut Workload,
    ) -> Result<(), EmulationError> {
        self.replace(instructions, workload).map(drop)
    }

    /// Counts are those of an observer.
    fn run(
        &self,
        instructions: &[Instruction],
        workload: &Workload,
    ) -> Result<EmulatedRun, EmulationError> {
        let mut workload = workload.clone();
        let proxies = self.replace(instructions, &mut workload)?;
        let mut counts: Vec<Executions> = Vec::new();
        let golden = workload.run_fault_free(|_, device: &mut Simulator, dispatch| {
            let mut executions = Executions::default();
            let completion = workload.run(device, dispatch, &mut executions, None);
            counts.push(executions);
            completion
        })?;
        let executed = workload.program.dispatches.iter().zip(&golden.statistics).zip(counts);
        let dispatches = executed.enumerate().map(|(dispatch, ((launch, statistics), counts))| {
            let found = proxies.get(&launch.module.0);
            let proxies = found.map(|proxies| proxies.executed(&launch.kernel, &counts));
            EmulatedDispatch {
                dispatch,
                kernel: launch.kernel.clone(),
                waves: statistics.waves,
                instructions: statistics.wave_instructions,
                proxies: proxies.unwrap_or_default(),
            }
        });
        let outputs = golden.outputs.iter().map(|output| output.bytes().into()).collect();
        Ok(EmulatedRun { dispatches: dispatches.collect(), outputs })
    }
}

impl Proxies {
    /// Executions of the proxies in a kernel and the functions that it may call.
    fn executed(&self, kernel: &str, counts: &Executions) -> Vec<ExecutedProxy> {
        let functions = &self.code.functions;
        let kernel = functions.iter().position(|function| *function.name == *kernel);
        let graph = CallGraph::of(&self.code);
        let reachable: Vec<usize> =
            kernel.into_iter().flat_map(|kernel| graph.reachable(kernel)).collect();
        let in_kernel = self.names.iter().filter_map(|(number, name)| {
            let inst = &self.code.instructions[*number];
            let line = self.code.lookup(inst.pc);
            let line = line.map(|line| format!("{}:{}", line.file, line.line));
            reachable.contains(&inst.function).then(|| ExecutedProxy {
                instruction: name.clone(),
                function: functions[inst.function].name.to_string(),
                pc: inst.pc.to_string(),
                line: line.unwrap_or_default(),
                executions: counts.0.get(&inst.pc.0).copied().unwrap_or(0),
            })
        });
        in_kernel.collect()
    }
}

/// Executions of instructions by address.
#[derive(Default)]
struct Executions(BTreeMap<u64, u64>);

impl Observer for Executions {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn after(&mut self, executed: &Executed<'_>, _: &mut dyn WaveState) -> Watch {
        *self.0.entry(executed.inst.pc().0).or_default() += 1;
        Watch::On
    }
}
