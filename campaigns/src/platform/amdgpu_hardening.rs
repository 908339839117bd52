//! Hardening of AMD code objects.

use super::hardening::{
    CodeFile, DifferenceCounter, HardenedModule, HardeningMethod, LockstepSummary, other_machine,
};
use super::{amdgpu, amdgpu_mut};
use crate::harden::HardeningError;
use flipwave_arch::Pc;
use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, Device, Dispatch, ModuleId};
use flipwave_harden::amdgpu::{Hardened, candidates, harden};
use flipwave_harden::{Candidates, DETECTED, Duplicated, HardenError, Hardening};
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::{HookCompiler, HookData};
use flipwave_hooks::rewrite::RewriteError;
use flipwave_injector::Workload;
use flipwave_isa::RegisterSet;
use flipwave_lockstep::{Difference, Lockstep};
use flipwave_machine::Simulator;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Duplication in AMD code objects.
#[derive(Default)]
pub(super) struct AmdgpuHardening {
    compiler: OnceLock<HookCompiler>,
}

impl AmdgpuHardening {
    fn compiler(&self) -> Result<&HookCompiler, HardeningError> {
        if let Some(compiler) = self.compiler.get() {
            return Ok(compiler);
        }
        let compiler = HookCompiler::find().map_err(HardenError::from)?;
        Ok(self.compiler.get_or_init(|| compiler))
    }
}

fn object(machine: &Simulator, module: ModuleId) -> Result<&CodeObject, HardeningError> {
    amdgpu(machine)?.code_object(module).ok_or_else(|| other_machine(machine))
}

impl HardeningMethod for AmdgpuHardening {
    fn candidates(
        &self,
        machine: &Simulator,
        module: ModuleId,
    ) -> Result<Candidates, HardeningError> {
        Ok(candidates(object(machine, module)?)?)
    }

    fn harden(
        &self,
        machine: &mut Simulator,
        module: ModuleId,
        hardening: Hardening<'_>,
    ) -> Result<Box<dyn HardenedModule>, HardeningError> {
        let hardened = harden(object(machine, module)?, hardening, self.compiler()?)?;
        let gpu = amdgpu_mut(machine)?;
        let id = gpu.load(&hardened.rewritten.object)?;
        gpu.set_original(id, Arc::new(hardened.guest.clone()));
        Ok(Box::new(AmdgpuHardened { id, hardened }))
    }
}

/// A hardened code object on the device.
struct AmdgpuHardened {
    id: ModuleId,
    hardened: Hardened,
}

impl AmdgpuHardened {
    /// The address and layout of the data in which comparisons count differences.
    fn data(&self) -> Option<&(flipwave_isa::Pc, HookData)> {
        self.hardened.rewritten.data.first()
    }
}

impl HardenedModule for AmdgpuHardened {
    fn id(&self) -> ModuleId {
        self.id
    }

    fn duplicated(&self) -> &BTreeMap<Pc, Duplicated> {
        &self.hardened.duplicated
    }

    fn counter(&self, machine: &Simulator) -> Result<Option<DifferenceCounter>, HardeningError> {
        let found =
            self.data().and_then(|(start, data)| Some((start, data.symbols.get(DETECTED)?)));
        let Some((start, symbol)) = found else { return Ok(None) };
        let address = amdgpu(machine)?.address_of(self.id, start.0 + symbol.offset)?;
        Ok(Some(DifferenceCounter { address, bytes: symbol.size as usize }))
    }

    fn file(&self) -> CodeFile {
        let bytes = self.hardened.rewritten.object.bytes().to_vec();
        CodeFile { extension: "hsaco", bytes }
    }

    fn compare_in_lockstep(
        &self,
        _: &Workload,
        machine: &Simulator,
        plain: &Dispatch,
        hardened: &Dispatch,
    ) -> Result<LockstepSummary, HardeningError> {
        let kernel = &plain.kernel;
        let diverged =
            |difference: String| HardeningError::Diverged { kernel: kernel.clone(), difference };
        let gpu = amdgpu(machine)?;
        let program = Disassembly::read(object(machine, plain.module)?)
            .map_err(|error| HardenError::from(RewriteError::from(error)))?;
        let liveness = Liveness::new(&program);
        let counted = self.data().and_then(|(address, data)| {
            let first = gpu.address_of(self.id, address.0).ok()?;
            Some(Range { start: first, end: Address(first.0 + data.size()) })
        });
        let lockstep = Lockstep {
            program: &program,
            live: &|at| liveness.before(at),
            claims: &self.hardened.rewritten.claims,
            gpu,
            original: plain,
            instrumented: hardened,
            changed: RegisterSet::EMPTY,
            replaced: BTreeSet::new(),
            ignored: counted.into_iter().collect(),
            is_strict: false,
        };
        let report = lockstep.run().map_err(|error| diverged(error.to_string()))?;
        let differing = match report.difference {
            // Unoptimized code computes with uninitialized registers. Their values can depend on the
            // address of the code.
            Some(difference @ Difference::Register { .. }) => {
                Some(format!("{kernel}: {difference}"))
            }
            Some(difference) => return Err(diverged(difference.to_string())),
            None => None,
        };
        let (instructions, registers) = (report.instructions, report.registers);
        Ok(LockstepSummary { instructions, registers, differing })
    }
}
