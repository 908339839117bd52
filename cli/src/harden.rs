//! `flipwave harden`.

use crate::arguments::HardenArguments;
use crate::display::Display;
use crate::run::{all_processors, check_complete};
use crate::table::{row, table};
use crate::{Failure, campaign, output};
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
    let mut display = Display::new(&campaign.attendance);
    let wanted = HardenOptions {
        budgets: arguments.budget.clone(),
        holds_out: arguments.hold_out,
        comparing: Comparing::Ends,
    };
    let found = flipwave_campaigns::harden(&campaign, &wanted, &options, &mut display);
    display.finish();
    let found = found?;
    check_complete(&found.plain, &folder)?;
    print(&found)?;
    match found.escapes.first() {
        None => Ok(()),
        Some(Escape { budget, index, site }) => Err(Failure::Escaped {
            count: found.escapes.len(),
            budget: *budget,
            index: *index,
            site: site.clone(),
        }),
    }
}

/// Prints what each budget brings.
fn print(found: &Hardenings) -> Result<(), Failure> {
    let percent = |rate: f64| format!("{:.1}", 100.0 * rate);
    let rates = |rates: &[f64; Outcome::ALL.len()]| {
        [Outcome::Sdc, Outcome::Detected, Outcome::Due, Outcome::Masked]
            .map(|outcome| percent(rates[outcome as usize]))
    };
    let mut lines = vec![row(&[
        "budget", "cost", "twice", "sdc", "detected", "due", "masked", "coverage", "interval",
    ])];
    let plain = found.plain.summary.scopes.first();
    let plain = Outcome::ALL.map(|own| plain.map_or(0.0, |all| all.share(own).rate));
    let mut first = vec!["plain".to_owned(), "1.000".to_owned(), "0".to_owned()];
    first.extend(rates(&plain));
    first.extend([String::new(), String::new()]);
    lines.push(first);
    for point in &found.points {
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
    let mut output = output::stdout();
    write!(output, "{}", table(&lines))?;
    let executed = found.points.first().map_or(0, |point| point.executed);
    let confidence = found.plain.summary.confidence;
    writeln!(
        output,
        "\nIn percent; coverage is the SDC that is silent no more, with its {confidence} interval. Twice: \
         of {executed} instructions of the code that are executed, those that are executed twice."
    )?;
    for (budget, least) in &found.too_small {
        writeln!(
            output,
            "A budget of {budget} is too small for anything: the least that protects an instruction is \
             {least:.3}."
        )?;
    }
    let (instructions, registers) = found
        .steps
        .iter()
        .fold((0, 0), |(one, other), own| (one + own.instructions, other + own.registers));
    let differing = found.steps.iter().find_map(|step| step.differing.as_ref());
    let differing = match differing {
        None => "no difference".to_owned(),
        Some(differing) => format!(
            "and a difference, which undefined registers explain if the code was compiled with -O0: \
             {differing}"
        ),
    };
    writeln!(
        output,
        "side by side: {instructions} instructions and {registers} values of registers, {differing}"
    )?;
    for file in &found.files {
        writeln!(output, "file: {}", file.display())?;
    }
    Ok(())
}
