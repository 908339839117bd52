//! The plain and the hardened versions of a campaign's program.

use super::error::HardeningError;
use super::hardenings::LockstepSummary;
use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::file::element::ElementType;
use crate::golden::golden;
use crate::outputs::compare::{OutputFormat, OutputRole};
use crate::platform::{amdgpu, amdgpu_mut};
use crate::program::prepare::{Prepared, prepare};
use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, Device, Dispatch, ModuleId};
use flipwave_harden::{Comparing, DETECTED, Hardened, Hardening, harden};
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::{HookCompiler, HookData};
use flipwave_hooks::rewrite::RewriteError;
use flipwave_injector::{Buffer, Golden};
use flipwave_isa::{Pc, RegisterSet};
use flipwave_lockstep::{Difference, Lockstep};
use flipwave_tools::ToolError;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// The unmodified program.
pub(super) struct PlainProgram {
    pub prepared: Prepared,
    pub golden: Golden,
    pub compiler: HookCompiler,
}

/// A hardened version of the program.
pub(super) struct HardenedProgram {
    pub prepared: Prepared,
    /// Hardened code, by module of the plain program.
    pub modules: BTreeMap<u32, HardenedModule>,
    /// Wave instructions executed by its golden run.
    pub instructions: u64,
}

/// A hardened code object on the device.
pub(super) struct HardenedModule {
    pub id: ModuleId,
    pub hardened: Hardened,
}

impl HardenedProgram {
    /// Returns the number of duplicated instructions.
    pub fn duplicated(&self) -> usize {
        self.modules.values().map(|module| module.hardened.duplicated.len()).sum()
    }
}

impl HardenedModule {
    /// Returns the address and layout of the data in which comparisons count differences.
    fn data(&self) -> Option<&(Pc, HookData)> {
        self.hardened.rewritten.data.first()
    }
}

/// Upper bound of the cost of a hardened program relative to the plain program, with all instructions
/// duplicated and compared.
const MAX_COST: u64 = 8;

fn instructions(golden: &Golden) -> u64 {
    golden.statistics.iter().map(|dispatch| dispatch.wave_instructions).sum()
}

impl PlainProgram {
    /// Prepares the program of a campaign, and performs its golden run.
    ///
    /// # Errors
    /// [`CampaignError`] if the program cannot be prepared or does not complete.
    pub fn new(campaign: &Campaign) -> Result<PlainProgram, CampaignError> {
        let prepared = prepare(campaign)?;
        let golden = golden(campaign, &prepared.workload, &prepared.formats)?;
        let compiler = HookCompiler::find().map_err(|error| Box::new(ToolError::Hook(error)))?;
        Ok(PlainProgram { prepared, golden, compiler })
    }

    /// Returns the number of wave instructions executed by the golden run.
    pub fn instructions(&self) -> u64 {
        instructions(&self.golden)
    }

    /// Returns the code objects whose kernels the program launches, by module.
    pub fn objects(&self) -> BTreeMap<u32, &CodeObject> {
        let workload = &self.prepared.workload;
        let modules = workload.program.dispatches.iter().map(|dispatch| dispatch.module);
        let gpu = amdgpu(&workload.device).ok();
        let object = |module: ModuleId| Some((module.0, gpu?.code_object(module)?));
        modules.filter_map(object).collect()
    }

    /// Returns the program with the instructions `chosen` in each module duplicated. Checks that its
    /// golden run has the same outputs and detects no difference.
    ///
    /// # Errors
    /// [`CampaignError`].
    pub fn hardened(
        &self,
        campaign: &Campaign,
        chosen: &BTreeMap<u32, BTreeSet<Pc>>,
        comparing: Comparing,
    ) -> Result<HardenedProgram, CampaignError> {
        let mut prepared = self.prepared.clone();
        let workload = &mut prepared.workload;
        let mut modules = BTreeMap::new();
        for (module, object) in self.objects() {
            let Some(instructions) = chosen.get(&module).filter(|chosen| !chosen.is_empty()) else {
                continue;
            };
            let hardening = Hardening { instructions, comparing };
            let hardened =
                harden(object, hardening, &self.compiler).map_err(HardeningError::from)?;
            let device = |error| CampaignError::from(Box::new(ToolError::Device(error)));
            let gpu = amdgpu_mut(&mut workload.device)?;
            let id = gpu.load(&hardened.rewritten.object).map_err(device)?;
            let loaded = HardenedModule { id, hardened };
            if let Some(symbol) = loaded.data().and_then(|(_, data)| data.symbols.get(DETECTED)) {
                let start = loaded.data().map_or(0, |(address, _)| address.0);
                let address = gpu.address_of(id, start + symbol.offset);
                workload.program.outputs.push(Buffer {
                    name: DETECTED.to_owned(),
                    address: address.map_err(device)?,
                    bytes: symbol.size as usize,
                });
                let role = OutputRole::Detector("hardening".to_owned());
                prepared.formats.push(OutputFormat {
                    element: ElementType::U64,
                    role,
                    extents: None,
                });
            }
            gpu.set_original(id, Arc::new(loaded.hardened.guest.clone()));
            modules.insert(module, loaded);
        }
        for dispatch in &mut workload.program.dispatches {
            if let Some(hardened) = modules.get(&dispatch.module.0) {
                dispatch.module = hardened.id;
                // The limit is for the plain program.
                dispatch.instruction_limit = dispatch.instruction_limit.saturating_mul(MAX_COST);
            }
        }
        let golden = golden(campaign, &prepared.workload, &prepared.formats)?;
        self.check_same(&prepared, &golden)?;
        Ok(HardenedProgram { prepared, modules, instructions: instructions(&golden) })
    }

    /// Checks that a hardened version has the outputs of the plain program, and detected no difference.
    fn check_same(&self, prepared: &Prepared, golden: &Golden) -> Result<(), CampaignError> {
        let outputs = prepared.workload.program.outputs.iter().zip(&golden.outputs);
        for (index, (output, found)) in outputs.enumerate() {
            let is_same = match self.golden.outputs.get(index) {
                Some(plain) => plain == found,
                None => found.bytes().iter().all(|byte| *byte == 0),
            };
            if !is_same {
                return Err(HardeningError::Output { output: output.name.clone() }.into());
            }
        }
        Ok(())
    }

    /// Runs the plain and the hardened version of the first launch of each kernel in lockstep.
    ///
    /// # Errors
    /// [`HardeningError::Diverged`] if control flow or memory diverged.
    pub fn compare_in_lockstep(
        &self,
        version: &HardenedProgram,
    ) -> Result<LockstepSummary, CampaignError> {
        let mut found = LockstepSummary::default();
        let mut device = amdgpu(&version.prepared.workload.device)?.clone();
        let mut seen = BTreeSet::new();
        let hardened = version.prepared.workload.program.dispatches.iter();
        for (plain, hardened) in self.prepared.workload.program.dispatches.iter().zip(hardened) {
            let is_first = seen.insert((plain.module.0, plain.kernel.clone()));
            if let Some(module) = version.modules.get(&plain.module.0).filter(|_| is_first) {
                let compared = in_step(&device, plain, hardened, module)?;
                found.instructions += compared.instructions;
                found.registers += compared.registers;
                found.differing = found.differing.or(compared.differing);
            }
            let run = device.dispatch(plain);
            run.map_err(|error| CampaignError::from(Box::new(ToolError::Device(error))))?;
        }
        Ok(found)
    }
}

/// Runs both versions of a launch in lockstep.
fn in_step(
    device: &flipwave_sim::EmbeddedGpu,
    original: &Dispatch,
    instrumented: &Dispatch,
    module: &HardenedModule,
) -> Result<LockstepSummary, CampaignError> {
    let kernel = &original.kernel;
    let diverged =
        |difference: String| HardeningError::Diverged { kernel: kernel.clone(), difference };
    let Some(object) = device.code_object(original.module) else {
        return Ok(LockstepSummary::default());
    };
    let program = Disassembly::read(object)
        .map_err(|error| HardeningError::Code(RewriteError::from(error).into()))?;
    let liveness = Liveness::new(&program);
    let counted = module.data().and_then(|(address, data)| {
        let first = device.address_of(module.id, address.0).ok()?;
        Some(Range { start: first, end: Address(first.0 + data.size()) })
    });
    let lockstep = Lockstep {
        program: &program,
        live: &|at| liveness.before(at),
        claims: &module.hardened.rewritten.claims,
        gpu: device,
        original,
        instrumented,
        changed: RegisterSet::EMPTY,
        replaced: BTreeSet::new(),
        ignored: counted.into_iter().collect(),
        is_strict: false,
    };
    let report = lockstep.run().map_err(|error| diverged(error.to_string()))?;
    let differing = match report.difference {
        // Unoptimized code computes with uninitialized registers. Their values can depend on the
        // address of the code.
        Some(difference @ Difference::Register { .. }) => Some(format!("{kernel}: {difference}")),
        Some(difference) => return Err(diverged(difference.to_string()).into()),
        None => None,
    };
    let (instructions, registers) = (report.instructions, report.registers);
    Ok(LockstepSummary { instructions, registers, differing })
}
