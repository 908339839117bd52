//! `flipwave launch`.

use crate::Failure;
use crate::arguments::LaunchArguments;
use flipwave_campaigns::{Campaign, CampaignError, Launched};
use std::io::Write;

pub fn launch(arguments: &LaunchArguments) -> Result<(), Failure> {
    let mut campaign = Campaign::read(&arguments.file).map_err(CampaignError::from)?;
    campaign.seed = arguments.seed.unwrap_or(campaign.seed);
    let Launched { target, kernels, outputs } =
        flipwave_campaigns::launch(&campaign, &arguments.out)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "completed on {target}: {}", kernels.join(", "))?;
    for (buffer, file) in outputs {
        writeln!(out, "{buffer}: {}", file.display())?;
    }
    Ok(())
}
