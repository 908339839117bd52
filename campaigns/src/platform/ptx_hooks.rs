//! Injection with hooks in PTX modules.

use super::hooks::{HookInjection, HookMethod, HookMethodError, HookedCodes};
use flipwave_injector::{
    Fault, FaultTarget, Injection, InjectionError, Selection, Site, Unreached, Workload,
};
use flipwave_injector_ptx::{LaneReach, PtxHookInjector, supports, unreached_by_hooks};
use flipwave_ptx_hooks::PtxHookCompiler;

/// Hooks in PTX modules.
#[derive(Default)]
pub(super) struct PtxHooks {
    /// The compiler, whose libraries all workers share.
    compiler: PtxHookCompiler,
}

impl HookMethod for PtxHooks {
    /// Code cannot change the address at which single lanes continue.
    fn check_target(&self, target: FaultTarget) -> Result<(), HookMethodError> {
        match target {
            FaultTarget::ProgramCounter => Err(HookMethodError::Target(target)),
            _ => Ok(()),
        }
    }

    fn unreached(
        &self,
        workload: &Workload,
        fault: &Fault,
        selection: &Selection,
    ) -> Result<Unreached, HookMethodError> {
        Ok(unreached_by_hooks(workload, fault, selection).map_err(Box::new)?)
    }

    fn injector<'a>(
        &self,
        workload: &'a Workload,
    ) -> Result<Box<dyn HookInjection + 'a>, HookMethodError> {
        Ok(Box::new(PtxHookInjector::new(workload, &self.compiler)))
    }

    fn supports(&self, site: &Site) -> bool {
        supports(site).is_ok()
    }

    fn counts_originals(&self) -> bool {
        true
    }
}

impl HookInjection for PtxHookInjector<'_> {
    fn inject(&mut self, site: &Site, limits: &[u64]) -> Result<Injection, InjectionError> {
        PtxHookInjector::inject(self, site, limits)
    }

    fn code(
        &mut self,
        site: &Site,
        limits: &[u64],
        reach: LaneReach,
    ) -> Result<HookedCodes, InjectionError> {
        self.hooked_code(site, limits, reach).map(HookedCodes::Ptx)
    }
}
