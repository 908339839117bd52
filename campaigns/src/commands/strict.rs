//! `flipwave strict`: executes the golden run on the strict level, which detects violations of
//! hardware rules.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::platform::amdgpu;
use crate::program::prepare_emulated;
use flipwave_injector_amdgpu::golden_strict;
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
    amdgpu(&workload.device)?;
    let (_, violations) = golden_strict(&workload, options)?;
    Ok(violations)
}
