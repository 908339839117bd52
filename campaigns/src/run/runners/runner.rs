//! What every runner does.

use crate::error::CampaignError;
use crate::outputs::compare::OutputRole;
use crate::program::prepare::Prepared;
use crate::run::outcome::ComparedEnding;
use crate::severity::ShownOutput;
use flipwave_injector::{Accelerations, Checkpoints, Golden, Injection, Output, Planned, Site};

/// Runs a campaign's program.
pub(crate) trait Runner: Sync {
    /// The program as a workload of the embedded GPU: faults are planned on that, whatever runs it.
    fn prepared(&self) -> &Prepared;

    /// Whether its faulty runs begin at saved states where there are some.
    fn takes_states(&self) -> bool {
        false
    }

    /// What the program's fault-free run leaves where it was not the embedded GPU that ran it.
    ///
    /// # Errors
    /// [`CampaignError`] if it leaves nothing.
    fn outputs(&self) -> Result<Option<Vec<Output>>, CampaignError> {
        Ok(None)
    }

    /// What a judge of severity is shown, as the fault-free run `golden` left it.
    ///
    /// # Errors
    /// [`CampaignError`] if it cannot be read.
    fn shown_outputs<'a>(&self, golden: &'a Golden) -> Result<Vec<ShownOutput<'a>>, CampaignError> {
        let Prepared { workload, formats, .. } = self.prepared();
        let outputs = workload.program.outputs.iter().zip(formats).zip(&golden.outputs);
        let results = outputs.enumerate().filter_map(|(place, ((buffer, format), golden))| {
            let content = (format.element, format.extents);
            matches!(format.role, OutputRole::Result(_))
                .then(|| ShownOutput::new(place, buffer.name.clone(), content, golden.bytes()))
        });
        Ok(results.collect())
    }

    /// What injects faults beside the fault-free run `golden`, from saved states if there are some.
    ///
    /// # Errors
    /// [`CampaignError`] if there is no way to inject them.
    fn injector<'a>(
        &'a self,
        golden: &'a Golden,
        states: Option<Checkpoints>,
        accelerations: Accelerations,
    ) -> Result<Box<dyn Inject + 'a>, CampaignError>;
}

/// Runs a program with faults, each beside the same fault-free run.
pub(crate) trait Inject: Sync {
    /// Runs it with a fault at `site`.
    ///
    /// # Errors
    /// [`CampaignError`] whenever the fault did not take place as the site says.
    fn inject(&self, site: &Site) -> Result<Injection<ComparedEnding>, CampaignError>;

    /// Runs it with a fault of the plan, or does without the run where its end is known.
    ///
    /// # Errors
    /// As [`Inject::inject`].
    fn inject_planned(
        &self,
        planned: &Planned,
    ) -> Result<Injection<ComparedEnding>, CampaignError> {
        self.inject(&planned.site)
    }

    /// Whether it can strike such a site.
    fn supports(&self, _site: &Site) -> bool {
        true
    }
}
