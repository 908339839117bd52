//! `flipwave fidelity`: reports which operations of a program are exact, and what depends on
//! results that no document specifies.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::program::prepare_emulated;
use flipwave_injector::FidelityRecord;

/// Executes the golden run of a campaign and reports its fidelity.
///
/// # Errors
/// [`CampaignError`] if the program cannot be assembled or does not complete.
pub fn fidelity(campaign: &Campaign) -> Result<FidelityRecord, CampaignError> {
    let run = prepare_emulated(campaign)?.workload.golden_with_fidelity();
    let (_, fidelity) = campaign.unless_cancelled(run.map_err(Into::into))?;
    Ok(FidelityRecord::of(&fidelity))
}
