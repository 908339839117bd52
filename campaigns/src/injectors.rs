//! The injectors of a campaign, for all its workers.

use crate::error::CampaignError;
use flipwave_hooks::hook::HookCompiler;
use flipwave_injector::{
    Accelerations, Golden, GoldenError, HookInjector, HookedCode, Injection, InjectionError,
    Injector, Planned, Site, StruckWorkgroups, Workload, inject, supports,
};
use flipwave_tools::ToolError;
use std::sync::{Mutex, PoisonError};

/// How faults are injected. Both ways strike the same sites with the same result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InjectionPath {
    /// Inside of the embedded GPU.
    #[default]
    Embedded,
    /// By hooks in rewritten code, as on any device.
    Hook,
}

impl InjectionPath {
    /// Whether what a run executes is the program's alone.
    pub(crate) fn counts_instructions(self) -> bool {
        self == InjectionPath::Embedded
    }
}

/// Injectors of one kind.
pub(crate) struct Injectors<'a> {
    workload: &'a Workload,
    limits: Vec<u64>,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Embedded(Box<Injector<'a>>),
    /// Those that no worker has at the moment; each keeps the code that it rewrote.
    Hook {
        compiler: HookCompiler,
        idle: Mutex<Vec<HookInjector<'a>>>,
    },
}

impl<'a> Injectors<'a> {
    /// Injectors that are fast for faults in `struck`.
    pub fn new(
        workload: &'a Workload,
        golden: &'a Golden,
        struck: StruckWorkgroups,
        path: InjectionPath,
        accelerations: Accelerations,
    ) -> Result<Injectors<'a>, CampaignError> {
        let kind = match path {
            InjectionPath::Embedded => {
                let injector = Injector::new(workload, golden, struck, accelerations);
                Kind::Embedded(Box::new(injector.map_err(GoldenError::from)?))
            }
            InjectionPath::Hook => {
                let compiler = HookCompiler::find();
                let compiler = compiler.map_err(|error| Box::new(ToolError::Hook(error)))?;
                Kind::Hook { compiler, idle: Mutex::default() }
            }
        };
        Ok(Injectors { workload, limits: golden.instruction_limits(), kind })
    }

    /// Injects a fault of the plan.
    pub fn inject(&self, planned: &Planned) -> Result<Injection, InjectionError> {
        match &self.kind {
            Kind::Embedded(injector) => injector.inject(planned),
            Kind::Hook { .. } => self.inject_site(&planned.site),
        }
    }

    /// Whether this way of injecting can strike such a site.
    pub fn supports(&self, site: &Site) -> bool {
        match &self.kind {
            Kind::Embedded(_) => true,
            Kind::Hook { .. } => supports(site).is_ok(),
        }
    }

    /// Injects a fault that need not be of the plan.
    pub fn inject_site(&self, site: &Site) -> Result<Injection, InjectionError> {
        let injection = self.with_hooks(|hooks| hooks.inject(site, &self.limits));
        injection.unwrap_or_else(|| inject(self.workload, site, &self.limits))
    }

    /// Code with hooks for a fault, to be run by another process; nothing where faults are injected
    /// without hooks.
    pub fn hooked_code(&self, site: &Site) -> Result<Option<Vec<HookedCode>>, InjectionError> {
        self.with_hooks(|hooks| hooks.hooked_code(site, &self.limits)).transpose()
    }

    /// Does something with an injector by hooks, if this is of such.
    fn with_hooks<T>(&self, what: impl FnOnce(&mut HookInjector<'a>) -> T) -> Option<T> {
        let Kind::Hook { compiler, idle } = &self.kind else { return None };
        let take = || idle.lock().unwrap_or_else(PoisonError::into_inner);
        let own = take().pop();
        let mut own = own.unwrap_or_else(|| HookInjector::new(self.workload, compiler));
        let done = what(&mut own);
        take().push(own);
        Some(done)
    }
}
