//! `flipwave run --dry-run`.

use crate::arguments::RunArguments;
use crate::display::Display;
use crate::failure::Failure;
use crate::output::say;
use crate::run::{fault_space_line, not_reached};
use crate::{output, strict};
use flipwave_campaigns::{Campaign, CampaignFile, DryRun, RunOptions};
use flipwave_host::output::printable;
use std::io::Write;
use std::num::NonZeroUsize;
use std::time::Duration;

/// Prints the size and estimated duration of a file's campaign, or of each of its selected variants.
pub fn dry_run(
    file: &CampaignFile,
    options: &RunOptions,
    arguments: &RunArguments,
) -> Result<(), Failure> {
    match file {
        CampaignFile::Plain(campaign) => one(campaign, options, arguments),
        CampaignFile::Varied(variants) => variants.chosen().iter().try_for_each(|variant| {
            writeln!(output::stdout(), "{}", printable(&variant.name))?;
            one(&variant.campaign, options, arguments)
        }),
    }
}

fn one(campaign: &Campaign, options: &RunOptions, arguments: &RunArguments) -> Result<(), Failure> {
    strict::check(&arguments.strict, campaign)?;
    let mut display = Display::new(&campaign.cancellation);
    let result = flipwave_campaigns::dry_run(campaign, options, &mut display);
    display.finish();
    let dry_run = result?;
    let DryRun { fault_space, fault, counted, planned, ends_early, golden, trials, tried, .. } =
        &dry_run;
    let mut output = output::stdout();
    writeln!(output, "{}", fault_space_line(fault_space, fault, counted))?;
    if let Some(line) = not_reached(fault_space) {
        say(&line);
        writeln!(output, "{line}")?;
    }
    let at_most = if *ends_early { "at most " } else { "" };
    writeln!(output, "injections: {at_most}{planned}")?;
    writeln!(output, "golden run: {}", seconds(*golden))?;
    let average = tried.div_f64((*trials).max(1) as f64);
    writeln!(output, "one injection: {} (average of {trials} trials)", seconds(average))?;
    let estimate = |workers: NonZeroUsize| {
        let threads = if workers.get() == 1 { "1 worker" } else { &format!("{workers} workers") };
        format!("{} with {threads}", seconds(dry_run.estimate(workers)))
    };
    let mut estimates = vec![estimate(NonZeroUsize::MIN)];
    if options.workers > NonZeroUsize::MIN {
        estimates.push(estimate(options.workers));
    }
    writeln!(output, "whole campaign: {at_most}about {}", estimates.join(", "))?;
    Ok(())
}

/// Formats a duration in a suitable unit.
fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        _ if seconds < 0.001 => format!("{:.0} us", 1e6 * seconds),
        _ if seconds < 1.0 => format!("{:.1} ms", 1e3 * seconds),
        _ if seconds < 600.0 => format!("{seconds:.1} s"),
        _ if seconds < 36_000.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
