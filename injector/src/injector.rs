//! The faults of a plan, one after another, by the shortest way that gives the same result.

use crate::fate::Fate;
use crate::injection::{Ending, Injection, InjectionError, Struck, check, inject};
use crate::population::{Foresight, Planned};
use crate::{Golden, Workload};

/// Which ways to be faster are taken. None of them changes a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accelerations {
    /// Faults in values that nothing reads are not run: the run is the fault-free one.
    pub dead_values: bool,
}

impl Accelerations {
    /// All of them.
    pub const ALL: Accelerations = Accelerations { dead_values: true };
    /// None: each fault is a whole run.
    pub const NONE: Accelerations = Accelerations { dead_values: false };
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
}

impl<'a> Injector<'a> {
    /// An injector for a workload whose fault-free run is `golden`.
    pub fn new(
        workload: &'a Workload,
        golden: &'a Golden,
        accelerations: Accelerations,
    ) -> Injector<'a> {
        Injector { workload, golden, limits: golden.instruction_limits(), accelerations }
    }

    /// Runs the workload with a fault of a plan.
    ///
    /// # Errors
    /// As [`inject`].
    pub fn inject(&self, planned: &Planned) -> Result<Injection, InjectionError> {
        if self.accelerations.dead_values
            && let Some(Foresight { value: Some((fate, before)), .. }) = planned.foresight
            && fate != Fate::Read
            && let Some(words) = planned.words()
        {
            check(self.workload, &planned.site, &self.limits)?;
            let struck = Struck { before, after: planned.site.action.apply(before), words };
            return Ok(Injection { struck, ending: self.fault_free() });
        }
        inject(self.workload, &planned.site, &self.limits)
    }

    /// How the fault-free run ends.
    fn fault_free(&self) -> Ending {
        let Golden { outputs, statistics } = self.golden.clone();
        Ending::Completed { outputs, statistics }
    }
}
