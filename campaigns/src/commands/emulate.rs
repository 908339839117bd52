//! `flipwave emulate`: executes a program with emulated instructions.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::golden::golden;
use crate::outputs::compare::{Difference, OutputRole, Tolerance, compare};
use crate::platform::{amdgpu, amdgpu_mut};
use crate::program::cancellable::CancellableDevice;
use crate::program::prepare::{Prepared, prepare, prepare_with_software};
use flipwave_codeobj::{CodeObject, LineTable};
use flipwave_device::{Device, Dispatch, ModuleId};
use flipwave_emulator::{ClosestMatch, EmulateError, Emulator, Instruction, Scan};
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::HookCompiler;
use flipwave_hooks::rewrite::{Instrumentation, RewriteError, Rewritten};
use flipwave_injector::Workload;
use flipwave_isa::Pc;
use flipwave_machine::Simulator;
use flipwave_tools::{Guest, ToolError, count_executions};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Result of an emulated program.
#[derive(Clone, Debug)]
pub struct Emulation {
    /// Each proxy instruction in each dispatch.
    pub instructions: Vec<EmulatedInstruction>,
    /// Instruction counts of each dispatch; those of the emulated version first.
    pub executed: Vec<Executed>,
    /// Contents of the outputs, in the order of the campaign.
    pub outputs: Vec<Vec<u8>>,
    /// Differences from the outputs of the software version, by name.
    pub differences: Vec<(String, Difference)>,
}

/// Execution count of an emulated instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EmulatedInstruction {
    /// Name of the emulated instruction.
    pub instruction: String,
    /// Index of the dispatch.
    pub dispatch: usize,
    /// Kernel of the dispatch.
    pub kernel: String,
    /// Kernel or device function that contains the proxy instruction.
    pub function: String,
    /// Address of the proxy instruction in the code object.
    pub pc: String,
    /// Source line, as `file:line`; empty if unknown.
    pub line: String,
    /// Number of executions by waves.
    pub executions: u64,
}

/// Instruction count of a dispatch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Executed {
    /// `emulated` or `software`.
    pub version: &'static str,
    /// Index of the dispatch.
    pub dispatch: usize,
    /// Kernel of the dispatch.
    pub kernel: String,
    /// Number of waves.
    pub waves: u64,
    /// Number of executed wave instructions. An emulated instruction counts once.
    pub instructions: u64,
    /// Average number of instructions per wave.
    pub per_wave: f64,
}

impl Executed {
    fn new(
        version: &'static str,
        dispatch: usize,
        kernel: &str,
        waves: u64,
        instructions: u64,
    ) -> Executed {
        let per_wave = instructions as f64 / waves.max(1) as f64;
        Executed { version, dispatch, kernel: kernel.to_owned(), waves, instructions, per_wave }
    }
}

/// Executes a program with emulated instructions, and its software version, if given.
///
/// # Errors
/// [`CampaignError`] if the program cannot be assembled, an instruction cannot be emulated, a
/// dispatch does not complete, or the campaign was cancelled.
pub fn emulate(campaign: &Campaign) -> Result<Emulation, CampaignError> {
    let instructions = campaign.instructions();
    if instructions.is_empty() {
        return Err(CampaignError::NoInstructions);
    }
    let mut emulated = prepare(campaign)?;
    install(instructions, &mut emulated.workload)?;
    golden(campaign, &emulated.workload, &emulated.formats)?;
    let (prepared, software) = prepare_with_software(campaign)?;
    let workload = &prepared.workload;
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
    let counts = campaign.unless_cancelled(counts.map_err(|error| Box::new(error).into()))?;
    let mut emulation = Emulation {
        instructions: Vec::new(),
        executed: Vec::new(),
        outputs: workload
            .read_outputs(&Simulator::new(device))
            .map_err(|error| Box::new(ToolError::from(error)))?,
        differences: Vec::new(),
    };
    for (table, counts) in &counts {
        let (dispatch, kernel) = (table.dispatch, table.kernel.as_str());
        let executed = counts.iter().map(|count| count.executions).sum();
        let waves = table.statistics.waves;
        emulation.executed.push(Executed::new("emulated", dispatch, kernel, waves, executed));
        let dispatched = workload.program.dispatches.get(dispatch);
        let module_proxies = dispatched.and_then(|dispatch| proxies.get(&dispatch.module.0));
        emulation.instructions.extend(counts.iter().filter_map(|count| {
            let Proxy { instruction, line } = module_proxies?.get(&count.pc)?.clone();
            Some(EmulatedInstruction {
                instruction,
                dispatch,
                kernel: kernel.to_owned(),
                function: count.function.clone(),
                pc: count.pc.to_string(),
                line,
                executions: count.executions,
            })
        }));
    }
    compare_software(campaign, &prepared, software, &mut emulation)?;
    campaign.unless_cancelled(Ok(emulation))
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
        matches.add(instructions, &scan);
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

/// Emulated instructions that have proxies, over all code objects.
#[derive(Default)]
struct Matches {
    /// Closest match by name of the emulated instruction; `None` if it has a proxy.
    closest: BTreeMap<String, Option<ClosestMatch>>,
}

impl Matches {
    /// Adds the matches in a code object.
    fn add(&mut self, instructions: &[Instruction], scan: &Scan<'_>) {
        for proxy in scan.proxies() {
            self.closest.insert(proxy.instruction.name.clone(), None);
        }
        for instruction in instructions {
            let closest = scan.closest_match(&instruction.name).cloned();
            let closest = closest.unwrap_or(ClosestMatch::NoOperation);
            let known =
                self.closest.entry(instruction.name.clone()).or_insert(Some(closest.clone()));
            if matches!(known, Some(ClosestMatch::NoOperation)) {
                *known = Some(closest);
            }
        }
    }

    /// Checks that each emulated instruction has a proxy.
    fn check(mut self, instructions: &[Instruction]) -> Result<(), EmulateError> {
        for instruction in instructions {
            if let Some(Some(closest)) = self.closest.remove(&instruction.name) {
                return Err(EmulateError::NoProxy {
                    instruction: instruction.name.clone(),
                    proxy: instruction.proxy.clone(),
                    closest: Box::new(closest),
                });
            }
        }
        Ok(())
    }
}

fn line(lines: &LineTable, pc: Pc) -> String {
    let line = lines.lookup(pc);
    line.map(|line| format!("{}:{}", line.file, line.line)).unwrap_or_default()
}

/// Replaces the code of a workload by code that emulates its proxy instructions.
///
/// # Errors
/// [`CampaignError`] if an instruction cannot be emulated.
pub(crate) fn install(
    instructions: &[Instruction],
    workload: &mut Workload,
) -> Result<(), CampaignError> {
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
    matches.add(instructions, &scan);
    scan.replace(&mut instrumentation);
    let rewritten = instrumentation.rewrite(compiler).map_err(Box::new)?;
    scan.check_replaced(&program, &rewritten.report)?;
    let results = |at| scan.results(&program, at);
    let guest = Guest::new(object, &program, &rewritten, &scan.emulated_insts(&program), results);
    Ok((rewritten, guest))
}

/// Executes the software version, if given, and compares its outputs.
fn compare_software(
    campaign: &Campaign,
    prepared: &Prepared,
    software: Vec<Dispatch>,
    emulation: &mut Emulation,
) -> Result<(), CampaignError> {
    if software.is_empty() {
        return Ok(());
    }
    let Workload { program, .. } = prepared.workload.clone();
    let program = flipwave_injector::Program { dispatches: software, ..program };
    let software = Workload { program, ..prepared.workload.clone() };
    let golden = golden(campaign, &software, &prepared.formats)?;
    let dispatches = software.program.dispatches.iter().zip(&golden.statistics);
    for (index, (dispatch, statistics)) in dispatches.enumerate() {
        let (waves, instructions) = (statistics.waves, statistics.wave_instructions);
        let executed = Executed::new("software", index, &dispatch.kernel, waves, instructions);
        emulation.executed.push(executed);
    }
    let outputs = software.program.outputs.iter().zip(&prepared.formats);
    let contents = golden.outputs.iter().zip(&emulation.outputs);
    for ((output, format), (software, emulated)) in outputs.zip(contents) {
        let tolerance = match &format.role {
            OutputRole::Result(tolerance) => *tolerance,
            OutputRole::Detector(_) => Tolerance::default(),
        };
        let difference = compare(format.element, &tolerance, &software.bytes(), emulated);
        emulation.differences.push((output.name.clone(), difference));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_tests::csv_text;

    #[test]
    fn serialized_tables_are_fixed() {
        let instruction = EmulatedInstruction {
            instruction: "v_new".to_owned(),
            dispatch: 1,
            kernel: "add".to_owned(),
            function: "helper".to_owned(),
            pc: "0x100".to_owned(),
            line: "add.cl:3".to_owned(),
            executions: 4,
        };
        assert_eq!(
            csv_text(&instruction),
            "instruction,dispatch,kernel,function,pc,line,executions\n\
             v_new,1,add,helper,0x100,add.cl:3,4\n"
        );
        assert_eq!(
            csv_text(&Executed::new("software", 1, "add", 2, 5)),
            "version,dispatch,kernel,waves,instructions,per_wave\nsoftware,1,add,2,5,2.5\n"
        );
    }
}
