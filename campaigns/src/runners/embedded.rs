//! The embedded GPU, which strikes inside of itself.

use super::runner::{Inject, Runner};
use crate::campaign::Campaign;
use crate::error::CampaignError;
use crate::golden::{FaultFree, golden_twice};
use crate::outcome::{Injected, beside};
use crate::prepare::Prepared;
use flipwave_injector::{
    Accelerations, Golden, GoldenError, Injector, Plan, Planned, Site, StruckWorkgroups, inject,
};

/// The embedded GPU.
pub(super) struct EmbeddedRunner<'a> {
    pub campaign: &'a Campaign,
    pub prepared: Prepared,
}

impl Runner for EmbeddedRunner<'_> {
    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn fault_free(&self) -> Result<FaultFree, CampaignError> {
        golden_twice(self.campaign, &self.prepared)
    }

    fn injector<'a>(
        &'a self,
        golden: &'a Golden,
        plan: Option<&Plan<'_>>,
        accelerations: Accelerations,
    ) -> Result<Box<dyn Inject + 'a>, CampaignError> {
        // No states are saved that nobody starts from.
        let struck = match (accelerations.saved_states, plan) {
            (true, Some(plan)) => plan.struck_workgroups(),
            _ => StruckWorkgroups::default(),
        };
        let prepared = &self.prepared;
        let injector = Injector::new(&prepared.workload, golden, struck, accelerations);
        let injector = injector.map_err(GoldenError::from)?;
        Ok(Box::new(Embedded { prepared, golden, injector, limits: golden.instruction_limits() }))
    }
}

struct Embedded<'a> {
    prepared: &'a Prepared,
    golden: &'a Golden,
    injector: Injector<'a>,
    limits: Vec<u64>,
}

impl Inject for Embedded<'_> {
    fn inject(&self, site: &Site) -> Result<Injected, CampaignError> {
        let injection = inject(&self.prepared.workload, site, &self.limits).map_err(Box::new)?;
        Ok(beside(self.golden, &self.prepared.formats, injection))
    }

    fn inject_planned(&self, planned: &Planned) -> Result<Injected, CampaignError> {
        let injection = self.injector.inject(planned).map_err(Box::new)?;
        Ok(beside(self.golden, &self.prepared.formats, injection))
    }
}
