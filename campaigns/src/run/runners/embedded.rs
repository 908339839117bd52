//! Injection inside the embedded GPU.

use super::runner::{Inject, Runner};
use crate::error::CampaignError;
use crate::program::prepare::Prepared;
use crate::run::outcome::ComparedEnding;
use flipwave_injector::{
    Accelerations, Checkpoints, Ending, Golden, Injection, Injector, Planned, Site, inject,
};

/// Runner that injects with observers of the embedded GPU.
pub(super) struct EmbeddedRunner {
    pub prepared: Prepared,
}

impl Runner for EmbeddedRunner {
    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn uses_checkpoints(&self) -> bool {
        true
    }

    fn injector<'a>(
        &'a self,
        golden: &'a Golden,
        checkpoints: Option<Checkpoints>,
        accelerations: Accelerations,
    ) -> Result<Box<dyn Inject + 'a>, CampaignError> {
        let prepared = &self.prepared;
        let injector =
            Injector::with_checkpoints(&prepared.workload, golden, checkpoints, accelerations);
        Ok(Box::new(Embedded { prepared, golden, injector, limits: golden.instruction_limits() }))
    }
}

struct Embedded<'a> {
    prepared: &'a Prepared,
    golden: &'a Golden,
    injector: Injector<'a>,
    limits: Vec<u64>,
}

impl Embedded<'_> {
    fn compare(&self, ending: Ending) -> ComparedEnding {
        ComparedEnding::new(self.golden, &self.prepared.formats, ending)
    }
}

impl Inject for Embedded<'_> {
    fn inject(&self, site: &Site) -> Result<Injection<ComparedEnding>, CampaignError> {
        let injection = inject(&self.prepared.workload, site, &self.limits).map_err(Box::new)?;
        Ok(injection.map_ending(|ending| self.compare(ending)))
    }

    fn inject_planned(
        &self,
        planned: &Planned,
    ) -> Result<Injection<ComparedEnding>, CampaignError> {
        let injection = self.injector.inject(planned).map_err(Box::new)?;
        Ok(injection.map_ending(|ending| self.compare(ending)))
    }
}
