//! How exact a campaign's program is executed: which operations are exact, and what results that no
//! document settles decide.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::program::prepare_emulated;
use flipwave_injector::FidelityRecord;

/// Runs a campaign's program once without faults, and reports how exact it is executed.
///
/// # Errors
/// [`CampaignError`] if the program cannot be put together or does not complete.
pub fn fidelity(campaign: &Campaign) -> Result<FidelityRecord, CampaignError> {
    let run = prepare_emulated(campaign)?.workload.golden_with_fidelity();
    let (_, fidelity) = campaign.unless_stopped(run.map_err(Into::into))?;
    Ok(FidelityRecord::of(&fidelity))
}
