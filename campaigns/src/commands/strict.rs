//! `flipwave strict`: executes the golden run on the strict level, which detects violations of
//! hardware rules.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::program::prepare_emulated;
use flipwave_sim::strict::{StrictOptions, Violation};

/// Executes the golden run of a campaign and returns its violations of hardware rules. Faulty runs
/// are never strict: a fault may violate rules, which hardware does not report.
///
/// # Errors
/// [`CampaignError`] if the program cannot be assembled or does not complete.
pub fn strict(
    campaign: &Campaign,
    options: StrictOptions,
) -> Result<Vec<Violation>, CampaignError> {
    let workload = prepare_emulated(campaign)?.workload;
    let (_, violations) = workload.golden_strict_with(options)?;
    Ok(violations)
}
