//! Injects the faults of a plan, one after another, with the fastest method that gives the same result.

use crate::checkpoints::{Attempt, Checkpoints};
use crate::fault_space::{Planned, StruckWorkgroups};
use crate::inject::injection::{Injection, InjectionError};
use crate::inject::run::{check, inject};
use crate::{Golden, Workload};
use flipwave_device::DeviceError;

/// Optimizations of injections. None of them changes a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accelerations {
    /// Def-use pruning: does not run faults in values that nothing reads, because such a run equals the
    /// golden run. Applies to registers, which only the instructions of their wave read.
    pub dead_values: bool,
    /// Starts runs at a checkpoint before the fault, and executes only the struck workgroup if it is
    /// independent of other workgroups.
    pub checkpoints: bool,
    /// Ends runs that have converged to the golden run's state, checked at the end of dispatches and at
    /// checkpoints of the whole dispatch.
    pub convergence: bool,
}

impl Accelerations {
    /// Enables all optimizations.
    pub const ALL: Accelerations =
        Accelerations { dead_values: true, checkpoints: true, convergence: true };
    /// Disables all optimizations: each fault is a complete run.
    pub const NONE: Accelerations =
        Accelerations { dead_values: false, checkpoints: false, convergence: false };
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
    checkpoints: Option<Checkpoints>,
}

impl<'a> Injector<'a> {
    /// Creates an injector for faults in a workload whose golden run is `golden`. Faults in the
    /// workgroups of `struck` start from checkpoints, which two more runs of the workload record if
    /// that optimization is enabled.
    ///
    /// # Errors
    /// None for a workload that ran before.
    pub fn new(
        workload: &'a Workload,
        golden: &'a Golden,
        struck: StruckWorkgroups,
        accelerations: Accelerations,
    ) -> Result<Injector<'a>, DeviceError> {
        let checkpoints = if accelerations.checkpoints {
            Checkpoints::record(workload, golden, struck)?
        } else {
            None
        };
        Ok(Injector::with_checkpoints(workload, golden, checkpoints, accelerations))
    }

    /// Creates an injector with existing checkpoints, such as those of
    /// [`Plan::resolve`](crate::Plan::resolve).
    pub fn with_checkpoints(
        workload: &'a Workload,
        golden: &'a Golden,
        checkpoints: Option<Checkpoints>,
        accelerations: Accelerations,
    ) -> Injector<'a> {
        let limits = golden.instruction_limits();
        Injector { workload, golden, limits, accelerations, checkpoints }
    }

    /// Runs the workload with a fault of a plan.
    ///
    /// # Errors
    /// As [`inject`].
    pub fn inject(&self, planned: &Planned) -> Result<Injection, InjectionError> {
        if self.accelerations.dead_values
            && let Some(struck) = planned.masked_strike()
        {
            check(self.workload, &planned.site, &self.limits)?;
            return Ok(Injection { struck, ending: self.golden.ending() });
        }
        if let Some(checkpoints) = &self.checkpoints
            && let Some(event) = planned.site.event()
        {
            check(self.workload, &planned.site, &self.limits)?;
            let time = planned.analysis.map(|analysis| analysis.time);
            let Injector { workload, golden, limits, accelerations, .. } = self;
            let (site, converges) = (&planned.site, accelerations.convergence);
            let attempt = Attempt { workload, golden, limits, site, event, time, converges };
            return checkpoints.inject(&attempt);
        }
        inject(self.workload, &planned.site, &self.limits)
    }
}
