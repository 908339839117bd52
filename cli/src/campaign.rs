//! Campaign files with the command line's variant, target and seed.

use crate::arguments::VariantArgument;
use crate::failure::Failure;
use crate::signals;
use flipwave_campaigns::{Campaign, CampaignError, CampaignFile};
use std::path::Path;

/// Reads the campaign of a file, or its selected variant. `seed` overrides the seed of the file. Stop
/// signals end the campaign's runs in an orderly way from then on.
pub fn read(
    file: &Path,
    variant: &VariantArgument,
    seed: Option<u64>,
) -> Result<Campaign, Failure> {
    let file = read_all(file, variant, seed)?;
    Ok(file.campaign(variant.name.as_deref()).map_err(CampaignError::from)?)
}

/// Reads all campaigns of a file, or only the selected variant. `seed` overrides the seed of the file. Stop
/// signals end the campaigns' runs in an orderly way from then on.
pub fn read_all(
    file: &Path,
    variant: &VariantArgument,
    seed: Option<u64>,
) -> Result<CampaignFile, Failure> {
    let mut file =
        CampaignFile::read(file, variant.target.as_deref()).map_err(CampaignError::from)?;
    file.choose(variant.name.as_deref(), seed).map_err(CampaignError::from)?;
    signals::listen(file.cancellation()).map_err(Failure::Signal)?;
    Ok(file)
}
