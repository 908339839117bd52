//! What a campaign's faults are drawn from, without injecting any.

use crate::campaign::Campaign;
use crate::error::CampaignError;
use crate::golden::golden;
use crate::program::prepare_emulated;
use crate::run::count;
use flipwave_injector::{PlanError, Profile};

/// Runs a campaign's program once without faults and counts what its faults can hit.
///
/// # Errors
/// [`CampaignError`] if the program cannot be put together or does not complete, if there is nothing
/// to hit, or if all runs were to stop.
pub fn profile(campaign: &Campaign) -> Result<Profile, CampaignError> {
    let faults = campaign.faults()?;
    let prepared = prepare_emulated(campaign)?;
    golden(campaign, &prepared.workload, &prepared.formats)?;
    let profile = count(&prepared.workload, faults)?;
    profile.check_places().map_err(PlanError::from)?;
    campaign.unless_stopped(Ok(profile))
}
