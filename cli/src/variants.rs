//! Campaigns of files with `vary`: `flipwave run` and `status`.

use crate::arguments::RunArguments;
use crate::display::Display;
use crate::output::say;
use crate::table::{row, table};
use crate::{Failure, output, run, shards, strict};
use flipwave_analysis::overview_table;
use flipwave_campaigns::{
    RunOptions, ShardOptions, Variants, VariantsReport, VariantsStatus, run_variant_shards,
    run_variants,
};
use std::io::Write;

/// `flipwave run` of the variants that are asked for.
pub fn run(
    variants: &Variants,
    options: &RunOptions,
    arguments: &RunArguments,
) -> Result<(), Failure> {
    for own in variants.chosen() {
        strict::check(&arguments.strict, &own.campaign)?;
    }
    let mut display = Display::new(variants.attendance());
    let result = run_variants(variants, options, &mut display);
    display.finish();
    let VariantsReport { finished, failure, is_complete } = result?;
    if let (Some(name), [own]) = (variants.chosen_name(), finished.as_slice()) {
        return run::print(&own.report, &options.folder.join(name));
    }
    if !finished.is_empty() {
        let lines: Vec<_> =
            finished.iter().map(|own| (own.name.as_str(), &own.report.summary)).collect();
        writeln!(output::stdout(), "{}", overview_table(&lines))?;
    }
    if is_complete {
        let table = options.folder.join("variants.csv");
        let mut output = output::stdout();
        writeln!(output, "results: {}", table.display())?;
        let rows = options.folder.join("results.csv");
        writeln!(
            output,
            "besides: {}, and the files of each variant in its folder",
            rows.display()
        )?;
    }
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    match finished.last() {
        Some(own) => run::check_complete(&own.report, &options.folder.join(&own.name)),
        None => Ok(()),
    }
}

/// A part of each variant that is asked for. What failed is reported when all have been tried.
pub fn shard(variants: &Variants, options: &ShardOptions) -> Result<(), Failure> {
    let mut display = Display::new(variants.attendance());
    let result = run_variant_shards(variants, options, &mut display);
    display.finish();
    let mut failures: Vec<Failure> = Vec::new();
    for own in result? {
        match own.result {
            Ok(report) => {
                let (part, name) = (&options.part, &own.name);
                writeln!(output::stdout(), "shard {part} of {name}: {}", shards::done(&report))?;
                let folder = options.folder.join(name);
                let options = ShardOptions { folder, ..options.clone() };
                failures.extend(shards::check_complete(&report, &options).err());
            }
            Err(failure) => failures.push(failure.into()),
        }
    }
    let Some(last) = failures.pop() else { return Ok(()) };
    failures.iter().for_each(|own| say(format!("flipwave: {own}")));
    Err(last)
}

/// How far the variants of a folder are.
pub fn status(status: &VariantsStatus) -> Result<(), Failure> {
    let mut output = output::stdout();
    let VariantsStatus { name, planned, done, variants, .. } = status;
    let (count, share) = (variants.len(), shards::share(*done, *planned));
    writeln!(
        output,
        "{name}: {done} of {planned} injections of {count} variants done ({share:.1} %)"
    )?;
    let begun = shards::begun(|state| status.count(state));
    if !begun.is_empty() {
        writeln!(output, "parts begun: {begun}")?;
    }
    let mut lines = vec![row(&["variant", "done", "planned", "parts begun"])];
    for own in variants {
        let parts = own.status.as_ref().map(|own| shards::begun(|state| own.count(state)));
        let numbers =
            own.status.as_ref().map(|own| (own.done.to_string(), own.planned.to_string()));
        let (done, planned) = numbers.unwrap_or_else(|| ("0".to_owned(), "?".to_owned()));
        lines.push(row(&[&own.variant, &done, &planned, &parts.unwrap_or_default()]));
    }
    write!(output, "{}", table(&lines))?;
    let is_complete = |own: &flipwave_campaigns::VariantStatus| {
        own.status.as_ref().is_some_and(|own| own.missing.is_empty())
    };
    match (variants.iter().all(is_complete), status.merged) {
        (true, true) => writeln!(output, "merged: results.csv has all rows")?,
        (true, false) => writeln!(output, "all rows are there: `flipwave merge` makes the tables")?,
        (false, _) => {
            writeln!(output, "`flipwave status FOLDER/VARIANT` has more of a variant")?;
        }
    }
    Ok(())
}
