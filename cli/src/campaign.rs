//! Campaign files, as the command line wants them.

use crate::arguments::VariantArgument;
use crate::{Failure, signals};
use flipwave_campaigns::{Campaign, CampaignError, CampaignFile};
use std::path::Path;

/// Reads the one campaign of a file, or the variant that is named of several; a seed of the command line
/// stands above the file's. Signals stop its runs in good order from then on.
pub fn read(
    file: &Path,
    variant: &VariantArgument,
    seed: Option<u64>,
) -> Result<Campaign, Failure> {
    let file = read_all(file, variant, seed)?;
    Ok(file.campaign(variant.name.as_deref()).map_err(CampaignError::from)?)
}

/// Reads all campaigns of a file, or of several the variant that is named.
pub fn read_all(
    file: &Path,
    variant: &VariantArgument,
    seed: Option<u64>,
) -> Result<CampaignFile, Failure> {
    let mut file = CampaignFile::read(file).map_err(CampaignError::from)?;
    file.choose(variant.name.as_deref(), seed).map_err(CampaignError::from)?;
    signals::listen(file.attendance()).map_err(Failure::Signal)?;
    Ok(file)
}
