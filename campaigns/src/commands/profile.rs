//! What a campaign's faults are drawn from, without injecting any.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::golden::surveyed;
use crate::program::prepare_emulated;
use flipwave_injector::{PlanError, Profile, ProfiledRun};
use std::num::NonZeroUsize;

/// Runs a campaign's program once without faults and counts what its faults can hit.
///
/// # Errors
/// [`CampaignError`] if the program cannot be put together or does not complete, if there is nothing
/// to hit, or if all runs were to stop.
pub fn profile(campaign: &Campaign) -> Result<Profile, CampaignError> {
    campaign.faults()?;
    let prepared = prepare_emulated(campaign)?;
    let ProfiledRun { profile, .. } = surveyed(campaign, &prepared, false, NonZeroUsize::MIN)?;
    profile.check_places().map_err(PlanError::from)?;
    campaign.unless_stopped(Ok(profile))
}
