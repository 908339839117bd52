//! The embedded GPU as hardware would be used: it runs code with hooks in it, which strike.

use super::runner::{Inject, Runner};
use crate::error::CampaignError;
use crate::program::prepare::Prepared;
use crate::run::outcome::ComparedEnding;
use flipwave_hooks::hook::HookCompiler;
use flipwave_injector::{
    Accelerations, Checkpoints, Golden, HookInjector, HookedCode, Injection, InjectionError, Site,
    Workload, supports,
};
use flipwave_tools::ToolError;
use std::sync::{Mutex, PoisonError};

/// The embedded GPU, on which hooks strike.
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
        _states: Option<Checkpoints>,
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
        let injection = self.hooks.with_one(|own| own.inject(site, limits)).map_err(Box::new)?;
        Ok(injection.map_ending(|ending| {
            ComparedEnding::new(self.golden, &self.prepared.formats, ending).without_instructions()
        }))
    }

    fn supports(&self, site: &Site) -> bool {
        supports(site).is_ok()
    }
}

/// Injectors by hooks, one for each worker. Each keeps the code that it rewrote.
pub(super) struct HookInjectors<'a> {
    workload: &'a Workload,
    limits: Vec<u64>,
    compiler: HookCompiler,
    /// Those that no worker has at the moment.
    idle: Mutex<Vec<HookInjector<'a>>>,
}

impl<'a> HookInjectors<'a> {
    /// Injectors for a workload whose fault-free run is `golden`.
    ///
    /// # Errors
    /// [`CampaignError::Tool`] without a compiler for hooks.
    pub fn new(workload: &'a Workload, golden: &Golden) -> Result<Self, CampaignError> {
        let compiler = HookCompiler::find();
        let compiler = compiler.map_err(|error| Box::new(ToolError::Hook(error)))?;
        let limits = golden.instruction_limits();
        Ok(HookInjectors { workload, limits, compiler, idle: Mutex::default() })
    }

    /// Code with hooks for a fault, to be run by another process.
    pub fn code(&self, site: &Site) -> Result<Vec<HookedCode>, InjectionError> {
        self.with_one(|own| own.hooked_code(site, &self.limits))
    }

    fn with_one<T>(&self, what: impl FnOnce(&mut HookInjector<'a>) -> T) -> T {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let own = idle().pop();
        let mut own = own.unwrap_or_else(|| HookInjector::new(self.workload, &self.compiler));
        let done = what(&mut own);
        idle().push(own);
        done
    }
}
