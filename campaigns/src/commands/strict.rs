//! The fault-free run at the strict level: does the program itself keep the rules of the hardware?

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::program::prepare_emulated;
use flipwave_sim::strict::{StrictOptions, Violation};

/// Runs a campaign's program once without faults, and gives what breaks the rules of the hardware.
/// Faulty runs are never strict: a fault may break rules, and hardware would not report it.
///
/// # Errors
/// [`CampaignError`] if the program cannot be put together or does not complete.
pub fn strict(
    campaign: &Campaign,
    options: StrictOptions,
) -> Result<Vec<Violation>, CampaignError> {
    let workload = prepare_emulated(campaign)?.workload;
    let (_, violations) = workload.golden_strict_with(options)?;
    Ok(violations)
}
