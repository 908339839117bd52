//! `flipwave profile`: profiles the fault space of a campaign.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::golden::profiled;
use crate::program::prepare_emulated;
use flipwave_injector::{PlanError, Profile, ProfiledRun};
use std::num::NonZeroUsize;

/// Executes the golden run of a campaign and profiles its fault space.
///
/// # Errors
/// [`CampaignError`] if the program cannot be assembled or does not complete, if the fault space is
/// empty, or if the campaign was cancelled.
pub fn profile(campaign: &Campaign) -> Result<Profile, CampaignError> {
    campaign.faults()?;
    let prepared = prepare_emulated(campaign)?;
    let ProfiledRun { profile, .. } = profiled(campaign, &prepared, false, NonZeroUsize::MIN)?;
    profile.check_places().map_err(PlanError::from)?;
    campaign.unless_cancelled(Ok(profile))
}
