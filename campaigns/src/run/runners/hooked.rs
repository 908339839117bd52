//! Injection with hooks on the embedded GPU, as on hardware.

use super::runner::{Inject, Runner};
use crate::attached::AttachError;
use crate::attached::process::StruckRun;
use crate::error::CampaignError;
use crate::platform::{HookInjection, HookMethod, HookedCodes};
use crate::program::prepare::Prepared;
use crate::run::outcome::ComparedEnding;
use flipwave_injector::{Accelerations, Checkpoints, Golden, Injection, Site, Workload};
use flipwave_injector_ptx::LaneReach;
use std::sync::{Mutex, PoisonError};

/// Runner that injects with hooks on the embedded GPU.
pub(super) struct HookRunner {
    pub prepared: Prepared,
    /// Hooks of the campaign's platform.
    pub method: Box<dyn HookMethod>,
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
        let HookRunner { prepared, method } = self;
        let idle = Pool::default();
        idle.put(method.injector(&prepared.workload)?);
        let limits = golden.instruction_limits();
        Ok(Box::new(Hooked { prepared, method: &**method, golden, limits, idle }))
    }
}

struct Hooked<'a> {
    prepared: &'a Prepared,
    method: &'a dyn HookMethod,
    golden: &'a Golden,
    limits: Vec<u64>,
    /// Injectors that no worker is using.
    idle: Pool<Box<dyn HookInjection + 'a>>,
}

impl Inject for Hooked<'_> {
    fn inject(&self, site: &Site) -> Result<Injection<ComparedEnding>, CampaignError> {
        let mut injector = match self.idle.take() {
            Some(injector) => injector,
            None => self.method.injector(&self.prepared.workload)?,
        };
        let injection = injector.inject(site, &self.limits);
        self.idle.put(injector);
        let injection = injection.map_err(Box::new)?;
        Ok(injection.map_ending(|ending| {
            let ending = ComparedEnding::new(self.golden, &self.prepared.formats, ending);
            if self.method.counts_originals() { ending } else { ending.without_instructions() }
        }))
    }

    fn supports(&self, site: &Site) -> bool {
        self.method.supports(site)
    }
}

/// Values that no worker is using.
struct Pool<T>(Mutex<Vec<T>>);

impl<T> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool(Mutex::default())
    }
}

impl<T> Pool<T> {
    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn put(&self, value: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    }
}

/// Creates code with hooks for the processes of a program. Workers have one injector each, which caches the code that
/// it has rewritten.
pub(super) struct HookInjectors<'a> {
    workload: &'a Workload,
    method: Box<dyn HookMethod>,
    limits: Vec<u64>,
    /// Injectors that no worker is using.
    idle: Pool<Box<dyn HookInjection + 'a>>,
}

impl<'a> HookInjectors<'a> {
    /// Creates injectors for a workload whose golden run is `golden`.
    ///
    /// # Errors
    /// [`CampaignError`] if there is no compiler for hooks.
    pub fn new(
        method: Box<dyn HookMethod>,
        workload: &'a Workload,
        golden: &Golden,
    ) -> Result<Self, CampaignError> {
        let idle = Pool::default();
        idle.put(method.injector(workload)?);
        Ok(HookInjectors { workload, method, limits: golden.instruction_limits(), idle })
    }

    /// Executes a run with code whose hooks inject a fault at `site`. Few faults strike lanes that do not reach the
    /// instruction, whose hooks take longer.
    ///
    /// # Errors
    /// [`CampaignError`] if hooks cannot inject the fault; errors of `run`.
    pub fn inject_in_process(
        &self,
        site: &Site,
        run: impl Fn(&HookedCodes) -> Result<StruckRun, CampaignError>,
    ) -> Result<StruckRun, CampaignError> {
        match run(&self.code(site, LaneReach::Reaching)?) {
            Err(CampaignError::Attach(AttachError::NotReached { .. }))
                if LaneReach::Deferred.is_for(site) =>
            {
                run(&self.code(site, LaneReach::Deferred)?)
            }
            struck => struck,
        }
    }

    /// Returns code with hooks that inject a fault at `site`, for another process.
    fn code(&self, site: &Site, reach: LaneReach) -> Result<HookedCodes, CampaignError> {
        let mut injector = match self.idle.take() {
            Some(injector) => injector,
            None => self.method.injector(self.workload)?,
        };
        let code = injector.code(site, &self.limits, reach);
        self.idle.put(injector);
        Ok(code.map_err(Box::new)?)
    }
}
