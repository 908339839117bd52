//! `flipwave profile`.

use crate::arguments::ProfileArguments;
use crate::long_runs::LongRuns;
use crate::output::say;
use crate::{Failure, campaign, output, strict};
use std::io::Write;

pub fn profile(arguments: &ProfileArguments) -> Result<(), Failure> {
    let campaign = campaign::read(&arguments.file, &arguments.variant, arguments.seed)?;
    let long_runs = LongRuns::of(&campaign.attendance, say);
    strict::check(&arguments.strict, &campaign)?;
    let profile = flipwave_campaigns::profile(&campaign)?;

    drop(long_runs);
    let mut output = output::stdout();
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
