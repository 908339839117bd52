//! Emulated instructions in AMD's code.

use super::emulation::{
    EmulatedDispatch, EmulatedRun, EmulationError, EmulationMethod, ExecutedProxy, Matches,
};
use super::{amdgpu, amdgpu_mut};
use crate::program::cancellable::CancellableDevice;
use flipwave_codeobj::{CodeObject, LineTable};
use flipwave_device::{Device, ModuleId};
use flipwave_emulator::{EmulateError, Emulator, Instruction, Scan};
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::HookCompiler;
use flipwave_hooks::rewrite::{Instrumentation, RewriteError, Rewritten};
use flipwave_injector::Workload;
use flipwave_isa::Pc;
use flipwave_machine::Simulator;
use flipwave_tools::{Guest, ToolError, count_executions};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Emulated instructions in AMD code objects.
pub(super) struct AmdgpuEmulation;

impl EmulationMethod for AmdgpuEmulation {
    fn install(
        &self,
        instructions: &[Instruction],
        workload: &mut Workload,
    ) -> Result<(), EmulationError> {
        let compiler = HookCompiler::find().map_err(|error| Box::new(ToolError::Hook(error)))?;
        let mut modules: BTreeMap<u32, ModuleId> = BTreeMap::new();
        let mut matches = Matches::default();
        for index in 0..workload.program.dispatches.len() {
            let module = workload.program.dispatches[index].module;
            if let Some(emulated) = modules.get(&module.0) {
                workload.program.dispatches[index].module = *emulated;
                continue;
            }
            let gpu = amdgpu_mut(&mut workload.device)?;
            let Some(object) = gpu.code_object(module) else { continue };
            let (rewritten, guest) =
                replace_proxies(instructions, object, &compiler, &mut matches).map_err(Box::new)?;
            let loaded = gpu.load(&rewritten.object);
            let loaded = loaded.map_err(|error| Box::new(ToolError::Device(error)))?;
            gpu.set_original(loaded, Arc::new(guest));
            modules.insert(module.0, loaded);
            workload.program.dispatches[index].module = loaded;
        }
        matches.check(instructions).map_err(Box::new)?;
        Ok(())
    }

    /// Counts are those of a hook at each instruction.
    fn run(
        &self,
        instructions: &[Instruction],
        workload: &Workload,
    ) -> Result<EmulatedRun, EmulationError> {
        let compiler = HookCompiler::find().map_err(|error| Box::new(ToolError::Hook(error)))?;
        let proxies = find_proxies(instructions, workload, &compiler).map_err(Box::new)?;
        let emulator = Emulator { instructions, compiler: &compiler };
        let gpu = amdgpu(&workload.device)?;
        let mut device = gpu.clone();
        let counts = count_executions(
            &mut CancellableDevice::new(&mut device, workload)
                .map_err(|error| Box::new(ToolError::from(error)))?,
            |module| gpu.code_object(module),
            &workload.program.dispatches,
            &compiler,
            Some(&emulator),
        );
        let counts = counts.map_err(Box::new)?;
        let outputs = workload
            .read_outputs(&Simulator::new(device))
            .map_err(|error| Box::new(ToolError::from(error)))?;
        let dispatches = counts.iter().map(|(table, counts)| {
            let dispatched = workload.program.dispatches.get(table.dispatch);
            let module = dispatched.and_then(|dispatch| proxies.get(&dispatch.module.0));
            let executed = counts.iter().filter_map(|count| {
                let Proxy { instruction, line } = module?.get(&count.pc)?.clone();
                let (function, pc) = (count.function.clone(), count.pc.to_string());
                Some(ExecutedProxy {
                    instruction,
                    function,
                    pc,
                    line,
                    executions: count.executions,
                })
            });
            EmulatedDispatch {
                dispatch: table.dispatch,
                kernel: table.kernel.clone(),
                waves: table.statistics.waves,
                instructions: counts.iter().map(|count| count.executions).sum(),
                proxies: executed.collect(),
            }
        });
        Ok(EmulatedRun { dispatches: dispatches.collect(), outputs })
    }
}

/// A proxy instruction in a code object.
#[derive(Clone)]
struct Proxy {
    /// Name of the emulated instruction.
    instruction: String,
    /// Source line, as `file:line`; empty if unknown.
    line: String,
}

/// Proxy instructions of a code object, by address.
type Proxies = BTreeMap<Pc, Proxy>;

/// Finds the proxy instructions of all code, by module. Each emulated instruction must have at
/// least one.
fn find_proxies(
    instructions: &[Instruction],
    workload: &Workload,
    compiler: &HookCompiler,
) -> Result<BTreeMap<u32, Proxies>, EmulateError> {
    let mut found = BTreeMap::new();
    let mut matches = Matches::default();
    let dispatches = &workload.program.dispatches;
    for module in dispatches.iter().map(|dispatch| dispatch.module) {
        let object = amdgpu(&workload.device).ok().and_then(|gpu| gpu.code_object(module));
        let Some(object) = object else { continue };
        if found.contains_key(&module.0) {
            continue;
        }
        let program =
            Disassembly::read(object).map_err(|error| Box::new(RewriteError::from(error)))?;
        let scan = Scan::new(object, &program, instructions, compiler)?;
        let lines = object.lines().unwrap_or_default();
        let mut proxies = Proxies::new();
        add_matches(&mut matches, instructions, &scan);
        for proxy in scan.proxies() {
            if let Some(inst) = program.inst(proxy.at) {
                let instruction = proxy.instruction.name.clone();
                let line = line(&lines, inst.pc);
                proxies.insert(inst.pc, Proxy { instruction, line });
            }
        }
        found.insert(module.0, proxies);
    }
    matches.check(instructions)?;
    Ok(found)
}

fn add_matches(matches: &mut Matches, instructions: &[Instruction], scan: &Scan<'_>) {
    let found = scan.proxies().map(|proxy| proxy.instruction);
    matches.add(instructions, found, |name| scan.closest_match(name).cloned());
}

fn line(lines: &LineTable, pc: Pc) -> String {
    let line = lines.lookup(pc);
    line.map(|line| format!("{}:{}", line.file, line.line)).unwrap_or_default()
}

/// Replaces the proxy instructions of a code object. Also returns the original code as the guest.
fn replace_proxies(
    instructions: &[Instruction],
    object: &CodeObject,
    compiler: &HookCompiler,
    matches: &mut Matches,
) -> Result<(Rewritten, Guest), EmulateError> {
    let mut instrumentation = Instrumentation::new(object).map_err(Box::new)?;
    let program = instrumentation.program().clone();
    let scan = Scan::new(object, &program, instructions, compiler)?;
    add_matches(matches, instructions, &scan);
    scan.replace(&mut instrumentation);
    let rewritten = instrumentation.rewrite(compiler).map_err(Box::new)?;
    scan.check_replaced(&program, &rewritten.report)?;
    let results = |at| scan.results(&program, at);
    let guest = Guest::new(object, &program, &rewritten, &scan.emulated_insts(&program), results);
    Ok((rewritten, guest))
}
