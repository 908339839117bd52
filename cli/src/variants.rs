//! Campaign files with `vary`: `flipwave run` and `status`.

use crate::arguments::RunArguments;
use crate::display::Display;
use crate::failure::Failure;
use crate::output::say;
use crate::table::{row, table};
use crate::{output, run, shards, strict};
use flipwave_analysis::overview_table;
use flipwave_campaigns::{
    RunOptions, ShardOptions, VariantStatus, Variants, VariantsReport, VariantsStatus,
    run_variant_shards, run_variants,
};
use std::io::Write;

/// Runs the selected variants.
pub fn run(
    variants: &Variants,
    options: &RunOptions,
    arguments: &RunArguments,
) -> Result<(), Failure> {
    for variant in variants.chosen() {
        strict::check(&arguments.strict, &variant.campaign)?;
    }
    let mut display = Display::new(variants.cancellation());
    let result = run_variants(variants, options, &mut display);
    display.finish();
    let VariantsReport { finished, failure, is_complete } = result?;
    if let (Some(name), [variant]) = (variants.chosen_name(), finished.as_slice()) {
        return run::print(&variant.report, &options.folder.join(name));
    }
    if !finished.is_empty() {
        let lines = finished.iter().map(|variant| (variant.name.as_str(), &variant.report.summary));
        writeln!(output::stdout(), "{}", overview_table(&lines.collect::<Vec<_>>()))?;
    }
    if is_complete {
        let table = options.folder.join("variants.csv");
        let mut output = output::stdout();
        writeln!(output, "results: {}", table.display())?;
        let rows = options.folder.join("results.csv");
        writeln!(
            output,
            "other files: {}, and the files of each variant in its folder",
            rows.display()
        )?;
    }
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    match finished.last() {
        Some(last) => run::check_complete(&last.report, &options.folder.join(&last.name)),
        None => Ok(()),
    }
}

/// Runs a shard of each selected variant. Failures are reported after all variants have been tried.
pub fn shard(variants: &Variants, options: &ShardOptions) -> Result<(), Failure> {
    let mut display = Display::new(variants.cancellation());
    let result = run_variant_shards(variants, options, &mut display);
    display.finish();
    let mut failures: Vec<Failure> = Vec::new();
    for variant in result? {
        match variant.result {
            Ok(report) => {
                let (part, name) = (&options.part, &variant.name);
                writeln!(output::stdout(), "shard {part} of {name}: {}", shards::done(&report))?;
                let folder = options.folder.join(name);
                let options = ShardOptions { folder, ..options.clone() };
                failures.extend(shards::check_complete(&report, &options).err());
            }
            Err(failure) => failures.push(failure.into()),
        }
    }
    let Some(last) = failures.pop() else { return Ok(()) };
    failures.iter().for_each(|failure| say(format!("flipwave: {failure}")));
    Err(last)
}

/// Prints the progress of the variants of a results folder.
pub fn status(status: &VariantsStatus) -> Result<(), Failure> {
    let mut output = output::stdout();
    let VariantsStatus { name, planned, done, variants, .. } = status;
    let (count, share) = (variants.len(), shards::share(*done, *planned));
    writeln!(
        output,
        "{name}: {done} of {planned} injections of {count} variants done ({share:.1} %)"
    )?;
    let started = shards::state_counts(|state| status.count(state));
    if !started.is_empty() {
        writeln!(output, "shards started: {started}")?;
    }
    let mut lines = vec![row(&["variant", "done", "planned", "shards started"])];
    for VariantStatus { variant, status, .. } in variants {
        let line = match status {
            Some(status) => {
                let started = shards::state_counts(|state| status.count(state));
                row(&[variant, &status.done.to_string(), &status.planned.to_string(), &started])
            }
            None => row(&[variant, "0", "?", ""]),
        };
        lines.push(line);
    }
    write!(output, "{}", table(&lines))?;
    let is_complete = |variant: &VariantStatus| {
        variant.status.as_ref().is_some_and(|status| status.missing.is_empty())
    };
    match (variants.iter().all(is_complete), status.merged) {
        (true, true) => writeln!(output, "merged: results.csv has all rows")?,
        (true, false) => {
            writeln!(output, "all rows are present: `flipwave merge` writes the tables")?;
        }
        (false, _) => {
            writeln!(output, "for details of a variant, run `flipwave status FOLDER/VARIANT`")?;
        }
    }
    Ok(())
}
