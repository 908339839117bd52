//! Campaign files, as the command line wants them.

use crate::{Failure, signals};
use flipwave_campaigns::{Campaign, CampaignError};
use std::path::Path;

/// Reads a campaign file; a seed of the command line stands above the file's. Signals stop its runs in
/// good order from then on.
pub fn read(file: &Path, seed: Option<u64>) -> Result<Campaign, Failure> {
    let mut campaign = Campaign::read(file).map_err(CampaignError::from)?;
    campaign.seed = seed.unwrap_or(campaign.seed);
    signals::listen(&campaign.attendance).map_err(Failure::Signal)?;
    Ok(campaign)
}
