//! `--strict`: executes the golden run on the strict level, which detects violations of the rules of an instruction
//! set.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::platform::RuleViolation;
use crate::program::prepare_emulated;
use flipwave_sim::strict::StrictOptions;

/// Executes the golden run of a campaign and returns its violations of rules. Faulty runs are never strict: a fault may
/// violate rules, which hardware does not report.
///
/// # Errors
/// [`CampaignError`] if the program cannot be assembled or does not complete, or if the platform has no strict level.
pub fn strict(
    campaign: &Campaign,
    options: StrictOptions,
) -> Result<Vec<RuleViolation>, CampaignError> {
    let workload = prepare_emulated(campaign)?.workload;
    Ok(campaign.target.strict()?.golden(&workload, options)?)
}
