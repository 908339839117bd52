//! A campaign's program in its plain and its hardened versions.

use super::error::HardeningError;
use super::hardenings::InStep;
use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::file::element::ElementType;
use crate::golden::golden;
use crate::outputs::compare::{OutputFormat, OutputRole};
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

/// The program as it is.
pub(super) struct Plain {
    pub prepared: Prepared,
    pub golden: Golden,
    pub compiler: HookCompiler,
}

/// A hardened version of it.
pub(super) struct Version {
    pub prepared: Prepared,
    /// The hardened code, by the plain module.
    pub modules: BTreeMap<u32, HardenedModule>,
    /// Wave instructions that it executes without a fault.
    pub instructions: u64,
}

/// A hardened code object on the device.
pub(super) struct HardenedModule {
    pub id: ModuleId,
    pub hardened: Hardened,
}

impl Version {
    /// How many instructions are executed twice.
    pub fn duplicated(&self) -> usize {
        self.modules.values().map(|module| module.hardened.duplicated.len()).sum()
    }
}

impl HardenedModule {
    /// The data of what counts: its place in the code object, and what it has.
    fn data(&self) -> Option<&(Pc, HookData)> {
        self.hardened.rewritten.data.first()
    }
}

/// More times the instructions of a program than executing all of it twice takes, comparisons included.
const MOST_TIMES: u64 = 8;

fn instructions(golden: &Golden) -> u64 {
    golden.statistics.iter().map(|own| own.wave_instructions).sum()
}

impl Plain {
    /// The program of a campaign.
    ///
    /// # Errors
    /// [`CampaignError`] if it cannot be put together or does not complete.
    pub fn new(campaign: &Campaign) -> Result<Plain, CampaignError> {
        let prepared = prepare(campaign)?;
        let golden = golden(campaign, &prepared.workload, &prepared.formats)?;
        let compiler = HookCompiler::find().map_err(|error| Box::new(ToolError::Hook(error)))?;
        Ok(Plain { prepared, golden, compiler })
    }

    /// Wave instructions that it executes.
    pub fn instructions(&self) -> u64 {
        instructions(&self.golden)
    }

    /// The code objects that it launches kernels of, by module.
    pub fn objects(&self) -> BTreeMap<u32, &CodeObject> {
        let workload = &self.prepared.workload;
        let modules = workload.program.dispatches.iter().map(|own| own.module);
        let object = |module: ModuleId| Some((module.0, workload.device.code_object(module)?));
        modules.filter_map(object).collect()
    }

    /// The program with these instructions executed twice, by module. It has computed the same, and
    /// detected nothing.
    ///
    /// # Errors
    /// [`CampaignError`].
    pub fn hardened(
        &self,
        campaign: &Campaign,
        chosen: &BTreeMap<u32, BTreeSet<Pc>>,
        comparing: Comparing,
    ) -> Result<Version, CampaignError> {
        let mut prepared = self.prepared.clone();
        let workload = &mut prepared.workload;
        let mut modules = BTreeMap::new();
        for (module, object) in self.objects() {
            let Some(instructions) = chosen.get(&module).filter(|own| !own.is_empty()) else {
                continue;
            };
            let hardening = Hardening { instructions, comparing };
            let hardened =
                harden(object, hardening, &self.compiler).map_err(HardeningError::from)?;
            let device = |error| CampaignError::from(Box::new(ToolError::Device(error)));
            let id = workload.device.load(&hardened.rewritten.object).map_err(device)?;
            let own = HardenedModule { id, hardened };
            if let Some(symbol) = own.data().and_then(|(_, data)| data.symbols.get(DETECTED)) {
                let start = own.data().map_or(0, |(address, _)| address.0);
                let address = workload.device.address_of(id, start + symbol.offset);
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
            workload.guests.insert(id.0, Arc::new(own.hardened.guest.clone()));
            modules.insert(module, own);
        }
        for dispatch in &mut workload.program.dispatches {
            if let Some(own) = modules.get(&dispatch.module.0) {
                dispatch.module = own.id;
                // The limit is one of the plain program's instructions.
                dispatch.instruction_limit = dispatch.instruction_limit.saturating_mul(MOST_TIMES);
            }
        }
        let golden = golden(campaign, &prepared.workload, &prepared.formats)?;
        self.check_same(&prepared, &golden)?;
        Ok(Version { prepared, modules, instructions: instructions(&golden) })
    }

    /// Checks that a hardened version has the plain one's outputs, and has detected nothing.
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

    /// Runs the first launch of each kernel in its plain and its hardened version side by side.
    ///
    /// # Errors
    /// [`HardeningError::Step`] where they go other ways, or leave another memory.
    pub fn keep_step(&self, version: &Version) -> Result<InStep, CampaignError> {
        let mut found = InStep::default();
        let mut device = version.prepared.workload.device.clone();
        let mut seen = BTreeSet::new();
        let hardened = version.prepared.workload.program.dispatches.iter();
        for (plain, hardened) in self.prepared.workload.program.dispatches.iter().zip(hardened) {
            let is_first = seen.insert((plain.module.0, plain.kernel.clone()));
            if let Some(module) = version.modules.get(&plain.module.0).filter(|_| is_first) {
                let own = in_step(&device, (plain, hardened), module)?;
                found.instructions += own.instructions;
                found.registers += own.registers;
                found.differing = found.differing.or(own.differing);
            }
            let run = device.dispatch(plain);
            run.map_err(|error| CampaignError::from(Box::new(ToolError::Device(error))))?;
        }
        Ok(found)
    }
}

/// Runs a launch in its two versions side by side.
fn in_step(
    device: &flipwave_sim::EmbeddedGpu,
    (original, instrumented): (&Dispatch, &Dispatch),
    module: &HardenedModule,
) -> Result<InStep, CampaignError> {
    let kernel = &original.kernel;
    let differs = |difference: String| HardeningError::Step { kernel: kernel.clone(), difference };
    let Some(object) = device.code_object(original.module) else { return Ok(InStep::default()) };
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
    let report = lockstep.run().map_err(|error| differs(error.to_string()))?;
    let differing = match report.difference {
        // Code that was not optimised computes with registers that nothing has set, and what an address
        // has left in them depends on where the code lies.
        Some(difference @ Difference::Register { .. }) => Some(format!("{kernel}: {difference}")),
        Some(difference) => return Err(differs(difference.to_string()).into()),
        None => None,
    };
    let (instructions, registers) = (report.instructions, report.registers);
    Ok(InStep { instructions, registers, differing })
}
