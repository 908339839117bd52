//! `flipwave profile`.

use crate::Failure;
use crate::arguments::ProfileArguments;
use crate::strict;
use flipwave_campaigns::{Campaign, CampaignError};
use std::io::Write;

pub fn profile(arguments: &ProfileArguments) -> Result<(), Failure> {
    let mut campaign = Campaign::read(&arguments.file).map_err(CampaignError::from)?;
    campaign.seed = arguments.seed.unwrap_or(campaign.seed);
    strict::check(&arguments.strict, &campaign)?;
    let profile = flipwave_campaigns::profile(&campaign)?;

    let mut output = std::io::stdout().lock();
    writeln!(output, "{}\n", profile.population)?;
    writeln!(output, "{}, {}: {}", profile.fault(), profile.selection(), profile.counted())?;
    let mut kernel = "";
    for instruction in &profile.instructions {
        if instruction.kernel != kernel {
            kernel = &instruction.kernel;
            writeln!(output, "\n{kernel}")?;
            writeln!(
                output,
                "{:>8} {:>14} {:>16} {:<8} instruction",
                "pc", "executed", "places", "group"
            )?;
        }
        writeln!(
            output,
            "{:>8} {:>14} {:>16} {:<8} {}",
            instruction.pc.to_string(),
            instruction.executions,
            instruction.places,
            instruction.group.to_string(),
            instruction.text.trim(),
        )?;
    }
    Ok(())
}
