//! The faults of a plan, one after another, by the shortest way that gives the same result.

use crate::inject::injection::{Injection, InjectionError};
use crate::inject::run::{check, inject};
use crate::population::{Planned, StruckWorkgroups};
use crate::restart::{Attempt, SavedStates};
use crate::{Golden, Workload};
use flipwave_device::DeviceError;

/// Which ways to be faster are taken. None of them changes a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accelerations {
    /// Faults in values that nothing reads are not run: the run is the fault-free one. Such values
    /// are registers of one wave, which nothing but its instructions reads.
    pub dead_values: bool,
    /// Runs begin at a saved state before the fault, and of workgroups that have nothing to do with
    /// one another only the struck one is executed.
    pub saved_states: bool,
    /// Runs end where they are in the state of the fault-free run again, when a dispatch ends or where
    /// a state of the whole dispatch was saved.
    pub convergence: bool,
}

impl Accelerations {
    /// All of them.
    pub const ALL: Accelerations =
        Accelerations { dead_values: true, saved_states: true, convergence: true };
    /// None: each fault is a whole run.
    pub const NONE: Accelerations =
        Accelerations { dead_values: false, saved_states: false, convergence: false };
}

impl Default for Accelerations {
    fn default() -> Accelerations {
        Accelerations::ALL
    }
}

/// Injects the faults of a plan into a workload.
pub struct Injector<'a> {
    workload: &'a Workload,
    golden: &'a Golden,
    limits: Vec<u64>,
    accelerations: Accelerations,
    states: Option<SavedStates>,
}

impl<'a> Injector<'a> {
    /// An injector for faults in a workload whose fault-free run is `golden`. It is fast for those in
    /// the workgroups of `struck`: the workload runs two times to save states for them, if that is one
    /// of the ways.
    ///
    /// # Errors
    /// None for a workload that ran before.
    pub fn new(
        workload: &'a Workload,
        golden: &'a Golden,
        struck: StruckWorkgroups,
        accelerations: Accelerations,
    ) -> Result<Injector<'a>, DeviceError> {
        let states = match accelerations.saved_states {
            true => SavedStates::record(workload, golden, struck)?,
            false => None,
        };
        Ok(Injector::with_states(workload, golden, states, accelerations))
    }

    /// The same with states that were saved before, if there are any, as by
    /// [`Plan::rehearse`](crate::Plan::rehearse).
    pub fn with_states(
        workload: &'a Workload,
        golden: &'a Golden,
        states: Option<SavedStates>,
        accelerations: Accelerations,
    ) -> Injector<'a> {
        let limits = golden.instruction_limits();
        Injector { workload, golden, limits, accelerations, states }
    }

    /// Runs the workload with a fault of a plan.
    ///
    /// # Errors
    /// As [`inject`].
    pub fn inject(&self, planned: &Planned) -> Result<Injection, InjectionError> {
        if self.accelerations.dead_values
            && let Some(struck) = planned.foreseen()
        {
            check(self.workload, &planned.site, &self.limits)?;
            return Ok(Injection { struck, ending: self.golden.ending() });
        }
        if let Some(states) = &self.states
            && let Some(event) = planned.site.event()
        {
            check(self.workload, &planned.site, &self.limits)?;
            let time = planned.foresight.map(|own| own.time);
            let Injector { workload, golden, limits, accelerations, .. } = self;
            let (site, converges) = (&planned.site, accelerations.convergence);
            let attempt = Attempt { workload, golden, limits, site, event, time, converges };
            return states.inject(&attempt);
        }
        inject(self.workload, &planned.site, &self.limits)
    }
}
