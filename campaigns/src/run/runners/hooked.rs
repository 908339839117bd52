//! Injection with hooks on the embedded GPU, as on hardware.

use super::runner::{Inject, Runner};
use crate::error::CampaignError;
use crate::program::prepare::Prepared;
use crate::run::outcome::ComparedEnding;
use flipwave_hooks::hook::HookCompiler;
use flipwave_injector::{
    Accelerations, Checkpoints, Golden, Injection, InjectionError, Site, Workload,
};
use flipwave_injector_amdgpu::{HookInjector, HookedCode, supports};
use flipwave_tools::ToolError;
use std::sync::{Mutex, PoisonError};

/// Runner that injects with hooks on the embedded GPU.
pub(super) struct HookRunner {
    pub prepared: Prepared,
}

impl Runner for HookRunner {
    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn injector<'a>(
        &'a self,
        golden: &'a Golden,
        _checkpoints: Option<Checkpoints>,
        _accelerations: Accelerations,
    ) -> Result<Box<dyn Inject + 'a>, CampaignError> {
        let hooks = HookInjectors::new(&self.prepared.workload, golden)?;
        Ok(Box::new(Hooked { prepared: &self.prepared, golden, hooks }))
    }
}

struct Hooked<'a> {
    prepared: &'a Prepared,
    golden: &'a Golden,
    hooks: HookInjectors<'a>,
}

impl Inject for Hooked<'_> {
    fn inject(&self, site: &Site) -> Result<Injection<ComparedEnding>, CampaignError> {
        let HookInjectors { limits, .. } = &self.hooks;
        let injection = self.hooks.with_injector(|injector| injector.inject(site, limits));
        let injection = injection.map_err(Box::new)?;
        Ok(injection.map_ending(|ending| {
            ComparedEnding::new(self.golden, &self.prepared.formats, ending).without_instructions()
        }))
    }

    fn supports(&self, site: &Site) -> bool {
        supports(site).is_ok()
    }
}

/// Hook injectors, one for each worker. Each caches the code that it has rewritten.
pub(super) struct HookInjectors<'a> {
    workload: &'a Workload,
    limits: Vec<u64>,
    compiler: HookCompiler,
    /// Injectors that no worker is using.
    idle: Mutex<Vec<HookInjector<'a>>>,
}

impl<'a> HookInjectors<'a> {
    /// Creates injectors for a workload whose golden run is `golden`.
    ///
    /// # Errors
    /// [`CampaignError::Tool`] if there is no compiler for hooks.
    pub fn new(workload: &'a Workload, golden: &Golden) -> Result<Self, CampaignError> {
        let compiler = HookCompiler::find();
        let compiler = compiler.map_err(|error| Box::new(ToolError::Hook(error)))?;
        let limits = golden.instruction_limits();
        Ok(HookInjectors { workload, limits, compiler, idle: Mutex::default() })
    }

    /// Returns code with hooks that inject a fault at `site`, for another process.
    pub fn code(&self, site: &Site) -> Result<Vec<HookedCode>, InjectionError> {
        self.with_injector(|injector| injector.hooked_code(site, &self.limits))
    }

    /// Calls `act` with an idle injector, or with a new one.
    fn with_injector<T>(&self, act: impl FnOnce(&mut HookInjector<'a>) -> T) -> T {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let reused = idle().pop();
        let mut injector =
            reused.unwrap_or_else(|| HookInjector::new(self.workload, &self.compiler));
        let result = act(&mut injector);
        idle().push(injector);
        result
    }
}
