//! Hardening of PTX modules.

use super::hardening::{
    CodeFile, DifferenceCounter, HardenedModule, HardeningMethod, LockstepSummary, other_machine,
};
use super::ptx_lockstep::compare;
use crate::harden::HardeningError;
use flipwave_arch::Pc;
use flipwave_device::{Dispatch, ModuleId};
use flipwave_harden::ptx::{Hardened, VARIABLE, candidates, harden};
use flipwave_harden::{Candidates, Duplicated, Hardening};
use flipwave_injector::Workload;
use flipwave_machine::Simulator;
use flipwave_ptx::Module;
use flipwave_ptx_sim::{Inserted, PtxGpu};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Duplication in PTX modules.
pub(super) struct PtxHardening;

fn gpu(machine: &Simulator) -> Result<&PtxGpu, HardeningError> {
    machine.downcast().ok_or_else(|| other_machine(machine))
}

fn module(machine: &Simulator, module: ModuleId) -> Result<Arc<Module>, HardeningError> {
    let program = gpu(machine)?.program(module).ok_or_else(|| other_machine(machine))?;
    Ok(Arc::clone(&program.module))
}

impl HardeningMethod for PtxHardening {
    fn candidates(&self, machine: &Simulator, id: ModuleId) -> Result<Candidates, HardeningError> {
        Ok(candidates(&*module(machine, id)?)?)
    }

    fn harden(
        &self,
        machine: &mut Simulator,
        plain: ModuleId,
        hardening: Hardening<'_>,
    ) -> Result<Box<dyn HardenedModule>, HardeningError> {
        let hardened = harden(&*module(machine, plain)?, hardening)?;
        let other = other_machine(machine);
        let gpu: &mut PtxGpu = machine.downcast_mut().ok_or(other)?;
        let rewritten = &hardened.rewritten;
        let (module, origins) = (&rewritten.module, &rewritten.origins);
        let id = gpu.load_rewritten(plain, module, origins, Inserted::Counted)?;
        Ok(Box::new(PtxHardened { id, hardened }))
    }
}

/// A hardened module on the device.
struct PtxHardened {
    id: ModuleId,
    hardened: Hardened,
}

impl HardenedModule for PtxHardened {
    fn id(&self) -> ModuleId {
        self.id
    }

    fn duplicated(&self) -> &BTreeMap<Pc, Duplicated> {
        &self.hardened.duplicated
    }

    fn counter(&self, machine: &Simulator) -> Result<Option<DifferenceCounter>, HardeningError> {
        let found = gpu(machine)?.variable(self.id, VARIABLE);
        Ok(found.map(|(address, bytes)| DifferenceCounter { address, bytes: bytes as usize }))
    }

    fn file(&self) -> CodeFile {
        let text = self.hardened.rewritten.module.to_string();
        CodeFile { extension: "ptx", bytes: text.into_bytes() }
    }

    fn compare_in_lockstep(
        &self,
        workload: &Workload,
        machine: &Simulator,
        plain: &Dispatch,
        hardened: &Dispatch,
    ) -> Result<LockstepSummary, HardeningError> {
        compare(workload, machine, [plain, hardened])
    }
}
