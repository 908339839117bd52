//! Injection with hooks in AMD code objects.

use super::hooks::{HookInjection, HookMethod, HookMethodError, HookedCodes};
use flipwave_hooks::hook::HookCompiler;
use flipwave_injector::{Fault, Injection, InjectionError, Selection, Site, Unreached, Workload};
use flipwave_injector_amdgpu::{HookInjector, supports, unreached_by_hooks};
use flipwave_injector_ptx::LaneReach;
use flipwave_tools::ToolError;
use std::sync::OnceLock;

/// Hooks in AMD code objects.
#[derive(Default)]
pub(super) struct AmdgpuHooks {
    /// The compiler, whose sources all workers share.
    compiler: OnceLock<HookCompiler>,
}

impl AmdgpuHooks {
    fn compiler(&self) -> Result<&HookCompiler, HookMethodError> {
        if let Some(compiler) = self.compiler.get() {
            return Ok(compiler);
        }
        let compiler = HookCompiler::find().map_err(|error| Box::new(ToolError::from(error)))?;
        Ok(self.compiler.get_or_init(|| compiler))
    }
}

impl HookMethod for AmdgpuHooks {
    fn unreached(
        &self,
        workload: &Workload,
        fault: &Fault,
        selection: &Selection,
    ) -> Result<Unreached, HookMethodError> {
        let found = unreached_by_hooks(workload, fault, selection, self.compiler()?);
        Ok(found.map_err(|error| Box::new(ToolError::from(error)))?)
    }

    fn injector<'a>(
        &self,
        workload: &'a Workload,
    ) -> Result<Box<dyn HookInjection + 'a>, HookMethodError> {
        Ok(Box::new(HookInjector::new(workload, self.compiler()?)))
    }

    fn supports(&self, site: &Site) -> bool {
        supports(site).is_ok()
    }

    /// The instructions of hooks count, too.
    fn counts_originals(&self) -> bool {
        false
    }
}

impl HookInjection for HookInjector<'_> {
    fn inject(&mut self, site: &Site, limits: &[u64]) -> Result<Injection, InjectionError> {
        HookInjector::inject(self, site, limits)
    }

    /// Hooks reach the registers of all lanes.
    fn code(
        &mut self,
        site: &Site,
        limits: &[u64],
        _: LaneReach,
    ) -> Result<HookedCodes, InjectionError> {
        self.hooked_code(site, limits).map(HookedCodes::Amdgpu)
    }
}
