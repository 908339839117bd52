//! The plain and the hardened versions of a campaign's program.

use super::error::HardeningError;
use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::file::element::ElementType;
use crate::golden::golden;
use crate::outputs::compare::{OutputFormat, OutputRole};
use crate::platform::{HardenedModule, HardeningMethod, LockstepSummary};
use crate::program::prepare::{Prepared, prepare};
use flipwave_arch::Pc;
use flipwave_device::ModuleId;
use flipwave_harden::{Comparing, DETECTED, Hardening};
use flipwave_injector::{Buffer, Golden};
use std::collections::{BTreeMap, BTreeSet};

/// The unmodified program.
pub(super) struct PlainProgram {
    pub prepared: Prepared,
    pub golden: Golden,
    pub method: Box<dyn HardeningMethod>,
}

/// A hardened version of the program.
pub(super) struct HardenedProgram {
    pub prepared: Prepared,
    /// Hardened code, by module of the plain program.
    pub modules: BTreeMap<u32, Box<dyn HardenedModule>>,
    /// Wave instructions executed by its golden run.
    pub instructions: u64,
}

impl HardenedProgram {
    /// Returns the number of duplicated instructions.
    pub fn duplicated(&self) -> usize {
        self.modules.values().map(|module| module.duplicated().len()).sum()
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
        let method = campaign.target.hardening()?;
        let prepared = prepare(campaign)?;
        let golden = golden(campaign, &prepared.workload, &prepared.formats)?;
        Ok(PlainProgram { prepared, golden, method })
    }

    /// Returns the number of wave instructions executed by the golden run.
    pub fn instructions(&self) -> u64 {
        instructions(&self.golden)
    }

    /// Returns the modules whose kernels the program launches.
    pub fn modules(&self) -> BTreeSet<u32> {
        let dispatches = &self.prepared.workload.program.dispatches;
        dispatches.iter().map(|dispatch| dispatch.module.0).collect()
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
        for (module, instructions) in chosen.iter().filter(|(_, chosen)| !chosen.is_empty()) {
            let hardening = Hardening { instructions, comparing };
            let plain = ModuleId(*module);
            let hardened = self.method.harden(&mut workload.device, plain, hardening)?;
            if let Some(counter) = hardened.counter(&workload.device)? {
                workload.program.outputs.push(Buffer {
                    name: DETECTED.to_owned(),
                    address: counter.address,
                    bytes: counter.bytes,
                });
                let role = OutputRole::Detector("hardening".to_owned());
                prepared.formats.push(OutputFormat {
                    element: ElementType::U64,
                    role,
                    extents: None,
                });
            }
            modules.insert(*module, hardened);
        }
        for dispatch in &mut workload.program.dispatches {
            if let Some(hardened) = modules.get(&dispatch.module.0) {
                dispatch.module = hardened.id();
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
        campaign: &Campaign,
        version: &HardenedProgram,
    ) -> Result<LockstepSummary, CampaignError> {
        let mut found = LockstepSummary::default();
        let workload = &version.prepared.workload;
        let mut machine = workload.device.clone();
        let mut seen = BTreeSet::new();
        let hardened = workload.program.dispatches.iter();
        for (plain, hardened) in self.prepared.workload.program.dispatches.iter().zip(hardened) {
            let is_first = seen.insert((plain.module.0, plain.kernel.clone()));
            if let Some(module) = version.modules.get(&plain.module.0).filter(|_| is_first) {
                let compared = module.compare_in_lockstep(workload, &machine, plain, hardened);
                let compared = campaign.unless_cancelled(compared.map_err(CampaignError::from))?;
                found.instructions += compared.instructions;
                found.registers += compared.registers;
                found.differing = found.differing.or(compared.differing);
            }
            let run = workload.dispatch(&mut machine, plain).map_err(HardeningError::from);
            campaign.unless_cancelled(run.map_err(CampaignError::from))?;
        }
        Ok(found)
    }
}
