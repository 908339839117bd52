//! A program with instructions that its target lacks.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::golden::golden;
use crate::outputs::compare::{Difference, OutputRole, Tolerance, compare};
use crate::program::prepare::{Prepared, prepare, prepare_beside_software};
use flipwave_codeobj::{CodeObject, LineTable};
use flipwave_device::{Device, Dispatch, ModuleId};
use flipwave_emulator::{ClosestMatch, EmulateError, Emulator, Instruction, Scan};
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::HookCompiler;
use flipwave_hooks::rewrite::{Instrumentation, RewriteError, Rewritten};
use flipwave_injector::{CancellableDevice, Workload};
use flipwave_isa::Pc;
use flipwave_tools::Guest;
use flipwave_tools::{
    Executions, InstLocation, InstructionCount, Options, ToolError, measure_with,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What came of an emulated program.
#[derive(Clone, Debug)]
pub struct Emulation {
    /// Each proxy in each dispatch.
    pub instructions: Vec<EmulatedInstruction>,
    /// What each dispatch executed, emulated ones first.
    pub executed: Vec<Executed>,
    /// The outputs' contents, in their order in the campaign.
    pub outputs: Vec<Vec<u8>>,
    /// How the software version's outputs differ, by their names.
    pub differences: Vec<(String, Difference)>,
}

/// How often an emulated instruction was executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EmulatedInstruction {
    /// Its name.
    pub instruction: String,
    /// The dispatch.
    pub dispatch: usize,
    /// Its kernel.
    pub kernel: String,
    /// The kernel or device function that the proxy is in.
    pub function: String,
    /// Where the proxy was in the code object.
    pub pc: String,
    /// The source line, as `file:line`; empty where it is not known.
    pub line: String,
    /// Executions by waves.
    pub executions: u64,
}

/// What a dispatch executed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Executed {
    /// `emulated` or `software`.
    pub version: &'static str,
    /// The dispatch.
    pub dispatch: usize,
    /// Its kernel.
    pub kernel: String,
    /// Waves.
    pub waves: u64,
    /// Instructions that waves executed; an emulated one counts as one.
    pub instructions: u64,
    /// The same for one wave, on average.
    pub per_wave: f64,
}

impl Executed {
    fn new(
        version: &'static str,
        (dispatch, kernel): (usize, &str),
        waves: u64,
        instructions: u64,
    ) -> Executed {
        let per_wave = instructions as f64 / waves.max(1) as f64;
        Executed { version, dispatch, kernel: kernel.to_owned(), waves, instructions, per_wave }
    }
}

/// Runs a program with its emulated instructions, and the software version, if there is one.
///
/// # Errors
/// [`CampaignError`] if the program cannot be put together, an instruction cannot be emulated, a
/// dispatch does not complete, or all runs were to stop.
pub fn emulate(campaign: &Campaign) -> Result<Emulation, CampaignError> {
    let instructions = campaign.instructions();
    if instructions.is_empty() {
        return Err(CampaignError::NoInstructions);
    }
    let mut emulated = prepare(campaign)?;
    install(instructions, &mut emulated.workload)?;
    golden(campaign, &emulated.workload, &emulated.formats)?;
    let (prepared, software) = prepare_beside_software(campaign)?;
    let workload = &prepared.workload;
    let compiler = HookCompiler::find().map_err(|error| Box::new(ToolError::Hook(error)))?;
    let places = scan(instructions, workload, &compiler).map_err(Box::new)?;
    let emulator = Emulator { instructions, compiler: &compiler };
    let mut device = workload.device.clone();
    let found = measure_with::<InstructionCount, _>(
        &mut CancellableDevice { device: &mut device, cancellation: &campaign.cancellation },
        |module| workload.device.code_object(module),
        &workload.program.dispatches,
        &Options::default(),
        &compiler,
        Some(&emulator),
    );
    let found = campaign.unless_stopped(found.map_err(|error| Box::new(error).into()))?;
    let mut emulation = Emulation {
        instructions: Vec::new(),
        executed: Vec::new(),
        outputs: workload
            .read_outputs(&device)
            .map_err(|error| Box::new(ToolError::from(error)))?,
        differences: Vec::new(),
    };
    for table in &found.tables {
        let of = (table.dispatch, table.kernel.as_str());
        let counted = table.rows.iter().map(|(_, own)| own.executions).sum();
        emulation.executed.push(Executed::new("emulated", of, table.statistics.waves, counted));
        let module = workload.program.dispatches.get(table.dispatch).map(|own| own.module);
        let emulated = module.and_then(|module| places.get(&module.0));
        emulation.instructions.extend(table.rows.iter().filter_map(|(place, own)| {
            let (instruction, line) = emulated?.get(&place.pc)?;
            Some(row((instruction, line), of, place, *own))
        }));
    }
    compare_software(campaign, &prepared, software, &mut emulation)?;
    campaign.unless_stopped(Ok(emulation))
}

fn row(
    (instruction, line): (&str, &str),
    (dispatch, kernel): (usize, &str),
    place: &InstLocation,
    counted: Executions,
) -> EmulatedInstruction {
    EmulatedInstruction {
        instruction: instruction.to_owned(),
        dispatch,
        kernel: kernel.to_owned(),
        function: place.function.clone(),
        pc: place.pc.to_string(),
        line: line.to_owned(),
        executions: counted.executions,
    }
}

/// Proxies of a code object: the instruction and its source line, by address.
type Proxies = BTreeMap<Pc, (String, String)>;

/// Finds the proxies of all code, by module; each instruction must be somewhere.
fn scan(
    instructions: &[Instruction],
    workload: &Workload,
    compiler: &HookCompiler,
) -> Result<BTreeMap<u32, Proxies>, EmulateError> {
    let mut found = BTreeMap::new();
    let mut fits = Fits::default();
    let modules: Vec<ModuleId> = workload.program.dispatches.iter().map(|own| own.module).collect();
    for module in modules {
        let Some(object) = workload.device.code_object(module) else { continue };
        if found.contains_key(&module.0) {
            continue;
        }
        let program =
            Disassembly::read(object).map_err(|error| Box::new(RewriteError::from(error)))?;
        let scan = Scan::new(object, &program, instructions, compiler)?;
        let lines = object.lines().unwrap_or_default();
        let mut proxies = Proxies::new();
        fits.add(instructions, &scan);
        for own in scan.proxies() {
            if let Some(inst) = program.inst(own.at) {
                let line = line(&lines, inst.pc);
                proxies.insert(inst.pc, (own.instruction.name.clone(), line));
            }
        }
        found.insert(module.0, proxies);
    }
    fits.demand(instructions)?;
    Ok(found)
}

/// Which instructions fit something, over all code.
#[derive(Default)]
struct Fits {
    /// By instruction: what comes nearest, nothing where something fits.
    nearest: BTreeMap<String, Option<ClosestMatch>>,
}

impl Fits {
    /// Takes in what was found in a code object.
    fn add(&mut self, instructions: &[Instruction], scan: &Scan<'_>) {
        for own in scan.proxies() {
            self.nearest.insert(own.instruction.name.clone(), None);
        }
        for instruction in instructions {
            let near = scan.closest_match(&instruction.name).cloned();
            let near = near.unwrap_or(ClosestMatch::NoOperation);
            let known = self.nearest.entry(instruction.name.clone()).or_insert(Some(near.clone()));
            if matches!(known, Some(ClosestMatch::NoOperation)) {
                *known = Some(near);
            }
        }
    }

    /// Demands that each instruction fits something.
    fn demand(mut self, instructions: &[Instruction]) -> Result<(), EmulateError> {
        for instruction in instructions {
            if let Some(Some(nearest)) = self.nearest.remove(&instruction.name) {
                return Err(EmulateError::NoProxy {
                    instruction: instruction.name.clone(),
                    proxy: instruction.proxy.clone(),
                    closest: Box::new(nearest),
                });
            }
        }
        Ok(())
    }
}

fn line(lines: &LineTable, pc: Pc) -> String {
    let line = lines.lookup(pc);
    line.map(|own| format!("{}:{}", own.file, own.line)).unwrap_or_default()
}

/// Puts emulated code in the place of a workload's own.
///
/// # Errors
/// [`CampaignError`] where an instruction cannot be emulated.
pub(crate) fn install(
    instructions: &[Instruction],
    workload: &mut Workload,
) -> Result<(), CampaignError> {
    let compiler = HookCompiler::find().map_err(|error| Box::new(ToolError::Hook(error)))?;
    let mut modules: BTreeMap<u32, ModuleId> = BTreeMap::new();
    let mut fits = Fits::default();
    for index in 0..workload.program.dispatches.len() {
        let module = workload.program.dispatches[index].module;
        if let Some(emulated) = modules.get(&module.0) {
            workload.program.dispatches[index].module = *emulated;
            continue;
        }
        let Some(object) = workload.device.code_object(module) else { continue };
        let (rewritten, guest) =
            replaced(instructions, object, &compiler, &mut fits).map_err(Box::new)?;
        let loaded = workload.device.load(&rewritten.object);
        let loaded = loaded.map_err(|error| Box::new(ToolError::Device(error)))?;
        workload.guests.insert(loaded.0, Arc::new(guest));
        modules.insert(module.0, loaded);
        workload.program.dispatches[index].module = loaded;
    }
    fits.demand(instructions).map_err(Box::new)?;
    Ok(())
}

/// A code object with its proxies replaced, and what it was.
fn replaced(
    instructions: &[Instruction],
    object: &CodeObject,
    compiler: &HookCompiler,
    fits: &mut Fits,
) -> Result<(Rewritten, Guest), EmulateError> {
    let mut instrumentation = Instrumentation::new(object).map_err(Box::new)?;
    let program = instrumentation.program().clone();
    let scan = Scan::new(object, &program, instructions, compiler)?;
    fits.add(instructions, &scan);
    scan.replace(&mut instrumentation);
    let rewritten = instrumentation.rewrite(compiler).map_err(Box::new)?;
    scan.check_replaced(&program, &rewritten.report)?;
    let results = |at| scan.results(&program, at);
    let guest = Guest::new(object, &program, &rewritten, &scan.emulated_insts(&program), results);
    Ok((rewritten, guest))
}

/// Runs the version in software, if there is one, and compares its outputs.
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
    for (index, (dispatch, own)) in
        software.program.dispatches.iter().zip(&golden.statistics).enumerate()
    {
        let of = (index, dispatch.kernel.as_str());
        let executed = Executed::new("software", of, own.waves, own.wave_instructions);
        emulation.executed.push(executed);
    }
    let outputs = software.program.outputs.iter().zip(&prepared.formats);
    let both = golden.outputs.iter().zip(&emulation.outputs);
    for ((output, format), (software, emulated)) in outputs.zip(both) {
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
    fn tables_have_fixed_columns() {
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
            csv_text(&Executed::new("software", (1, "add"), 2, 5)),
            "version,dispatch,kernel,waves,instructions,per_wave\nsoftware,1,add,2,5,2.5\n"
        );
    }
}
