//! `flipwave harden`.

use crate::arguments::HardenArguments;
use crate::display::Display;
use crate::failure::Failure;
use crate::run::{all_processors, check_complete};
use crate::table::{row, table};
use crate::{campaign, output};
use flipwave_analysis::Outcome;
use flipwave_campaigns::{Comparing, Escape, HardenOptions, Hardenings, RunOptions};
use std::io::Write;

pub fn harden(arguments: &HardenArguments) -> Result<(), Failure> {
    let campaign = campaign::read(&arguments.file, &arguments.variant, arguments.seed)?;
    let folder = arguments.out.clone();
    let folder = folder.unwrap_or_else(|| format!("{}.hardened", campaign.name).into());
    let workers = arguments.workers.unwrap_or_else(all_processors);
    let options = RunOptions {
        resume: arguments.resume,
        force: arguments.force,
        take_over: arguments.take_over,
        ..RunOptions::new(folder.clone(), workers)
    };
    let mut display = Display::new(&campaign.cancellation);
    let harden_options = HardenOptions {
        budgets: arguments.budget.clone(),
        holds_out: arguments.hold_out,
        comparing: Comparing::Ends,
    };
    let result = flipwave_campaigns::harden(&campaign, &harden_options, &options, &mut display);
    display.finish();
    let hardenings = result?;
    check_complete(&hardenings.plain, &folder)?;
    print(&hardenings)?;
    match hardenings.escapes.first() {
        None => Ok(()),
        Some(Escape { budget, index, site }) => Err(Failure::UndetectedSdc {
            count: hardenings.escapes.len(),
            budget: *budget,
            index: *index,
            site: site.clone(),
        }),
    }
}

/// Prints the cost and the coverage of each budget, and the result of the lockstep run.
fn print(hardenings: &Hardenings) -> Result<(), Failure> {
    let mut output = output::stdout();
    write!(output, "{}", table(&rows(hardenings)))?;
    let executed = hardenings.points.first().map_or(0, |point| point.executed);
    let confidence = hardenings.plain.summary.confidence;
    writeln!(
        output,
        "\nRates in percent. Coverage: share of the original SDC that no longer occurs silently, with its \
         {confidence} interval. Twice: duplicated instructions, of {executed} executed instructions of \
         the code."
    )?;
    for (budget, minimum) in &hardenings.too_small {
        writeln!(
            output,
            "The budget {budget} is too small: protecting any instruction needs at least {minimum:.3}."
        )?;
    }
    let instructions: u64 = hardenings.steps.iter().map(|step| step.instructions).sum();
    let registers: u64 = hardenings.steps.iter().map(|step| step.registers).sum();
    let difference = match hardenings.steps.iter().find_map(|step| step.differing.as_ref()) {
        None => "no difference".to_owned(),
        Some(difference) => format!(
            "a difference, which may come from undefined registers if the code was compiled with -O0, from \
             clocks, or from the order in which waves access memory: {difference}"
        ),
    };
    writeln!(
        output,
        "lockstep: {instructions} instructions and {registers} register values compared, {difference}"
    )?;
    for file in &hardenings.files {
        writeln!(output, "file: {}", file.display())?;
    }
    Ok(())
}

/// Builds the table: a heading, the original program and one row per budget.
fn rows(hardenings: &Hardenings) -> Vec<Vec<String>> {
    let percent = |rate: f64| format!("{:.1}", 100.0 * rate);
    let rates = |rates: &[f64; Outcome::ALL.len()]| {
        [Outcome::Sdc, Outcome::Detected, Outcome::Due, Outcome::Masked]
            .map(|outcome| percent(rates[outcome as usize]))
    };
    let mut lines = vec![row(&[
        "budget", "cost", "twice", "sdc", "detected", "due", "masked", "coverage", "interval",
    ])];
    let scope = hardenings.plain.summary.scopes.first();
    let plain_rates =
        Outcome::ALL.map(|outcome| scope.map_or(0.0, |scope| scope.share(outcome).rate));
    let mut plain = vec!["plain".to_owned(), "1.000".to_owned(), "0".to_owned()];
    plain.extend(rates(&plain_rates));
    plain.extend([String::new(), String::new()]);
    lines.push(plain);
    for point in &hardenings.points {
        let mut line = vec![
            point.budget.to_string(),
            format!("{:.3}", point.cost),
            point.duplicated.to_string(),
        ];
        line.extend(rates(&point.rates));
        let interval = point.interval;
        line.push(percent(point.coverage));
        line.push(format!("[{} {}]", percent(interval.low), percent(interval.high)));
        lines.push(line);
    }
    lines
}
