//! Interfaces of all runners.

use crate::error::CampaignError;
use crate::outputs::compare::OutputRole;
use crate::program::prepare::Prepared;
use crate::run::outcome::ComparedEnding;
use crate::severity::ShownOutput;
use flipwave_injector::{Accelerations, Checkpoints, Golden, Injection, Output, Planned, Site};

/// Executes a campaign's program.
pub(crate) trait Runner: Sync {
    /// The program as a workload of the embedded GPU, on which faults are planned for all devices.
    fn prepared(&self) -> &Prepared;

    /// Returns `true` if faulty runs can start from checkpoints.
    fn uses_checkpoints(&self) -> bool {
        false
    }

    /// Outputs of the golden run, if it ran on another device than the embedded GPU.
    ///
    /// # Errors
    /// [`CampaignError`] if the run left no outputs.
    fn outputs(&self) -> Result<Option<Vec<Output>>, CampaignError> {
        Ok(None)
    }

    /// Outputs of the golden run that a judge of severity receives.
    ///
    /// # Errors
    /// [`CampaignError`] if they cannot be read.
    fn shown_outputs<'a>(&self, golden: &'a Golden) -> Result<Vec<ShownOutput<'a>>, CampaignError> {
        let Prepared { workload, formats, .. } = self.prepared();
        let outputs = workload.program.outputs.iter().zip(formats).zip(&golden.outputs);
        let results = outputs.enumerate().filter_map(|(place, ((buffer, format), golden))| {
            let (element, extents) = (format.element, format.extents);
            matches!(format.role, OutputRole::Result(_)).then(|| {
                ShownOutput::new(place, buffer.name.clone(), element, extents, golden.bytes())
            })
        });
        Ok(results.collect())
    }

    /// Creates an injector that compares faulty runs with the golden run, and starts them from
    /// `checkpoints` if given.
    ///
    /// # Errors
    /// [`CampaignError`] if the runner cannot inject.
    fn injector<'a>(
        &'a self,
        golden: &'a Golden,
        checkpoints: Option<Checkpoints>,
        accelerations: Accelerations,
    ) -> Result<Box<dyn Inject + 'a>, CampaignError>;
}

/// Executes a program with faults, and compares the runs with one golden run.
pub(crate) trait Inject: Sync {
    /// Executes the program with a fault at `site`.
    ///
    /// # Errors
    /// [`CampaignError`] if the fault was not injected as the site describes.
    fn inject(&self, site: &Site) -> Result<Injection<ComparedEnding>, CampaignError>;

    /// Executes the program with a fault of the plan, unless the result is known.
    ///
    /// # Errors
    /// As [`Inject::inject`].
    fn inject_planned(
        &self,
        planned: &Planned,
    ) -> Result<Injection<ComparedEnding>, CampaignError> {
        self.inject(&planned.site)
    }

    /// Returns `true` if the mechanism can inject a fault at `site`.
    fn supports(&self, _site: &Site) -> bool {
        true
    }
}
