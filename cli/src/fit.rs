//! `flipwave fit`.

use crate::failure::Failure;
use crate::output::say;
use crate::results_arguments::FitArguments;
use crate::table::{row, table};
use crate::{output, report};
use flipwave_analysis::{DeviceFailures, Estimate, FailureLine, FailureScope, VulnerabilityFactor};
use std::io::Write;

/// The number of significant digits printed; the CSV table has more.
const DIGITS: i32 = 3;

pub fn fit(arguments: &FitArguments) -> Result<(), Failure> {
    let (about, rows) = flipwave_campaigns::about(&arguments.folder)?;
    let campaign = report::aggregates(&arguments.folder, about, rows)?;
    let failures = flipwave_campaigns::failures(&arguments.rates, &campaign)?;
    let about = campaign.info();
    if let Some(unfinished) = &about.unfinished {
        say(format_args!("flipwave: warning: {}: {unfinished}", about.folder));
    }
    let mut output = output::stdout();
    write!(output, "{}", table(&cells(&failures)))?;
    writeln!(
        output,
        "\nProbabilities in percent, MTBF in hours, {} intervals in brackets. A failure is SDC or DUE.",
        failures.confidence
    )?;
    let fault = about.fact("Fault");
    for (name, value) in [("faults", fault), ("struck", about.fact("Struck"))] {
        writeln!(output, "{name}: {}", value.unwrap_or("not recorded"))?;
    }
    if let Some(fault) = fault {
        writeln!(output, "P: {}.", VulnerabilityFactor::of_fault(fault).note())?;
    }
    if let Some(path) = &arguments.csv {
        let failed = |reason: &dyn ToString| Failure::File {
            file: path.display().to_string(),
            reason: reason.to_string(),
        };
        let mut table = Vec::new();
        failures.write_csv(&mut table).map_err(|error| failed(&error))?;
        flipwave_host::output::replace(path, &table).map_err(|error| failed(&error))?;
        writeln!(output, "table: {}", path.display())?;
    }
    Ok(())
}

fn cells(failures: &DeviceFailures) -> Vec<Vec<String>> {
    let heading =
        ["structure", "raw FIT", "P(SDC)", "P(DUE)", "FIT SDC", "FIT DUE", "FIT failure", "MTBF"];
    let line = |FailureLine { scope, raw, failures: [sdc, due, _, any] }: FailureLine<'_>| {
        let percent = |failures: Estimate| format!("{:.1}", 100.0 * failures.value / raw.value);
        vec![
            match scope {
                FailureScope::Structure(structure) => structure.name.clone(),
                FailureScope::Device => "one device".to_owned(),
                FailureScope::Devices => format!("all {} devices", failures.devices),
            },
            number(raw.value),
            percent(sdc),
            percent(due),
            with_interval(sdc),
            with_interval(due),
            with_interval(any),
            with_interval(any.hours()),
        ]
    };
    let mut lines = failures.lines();
    if failures.devices == 1 {
        lines.pop();
    }
    std::iter::once(row(&heading)).chain(lines.into_iter().map(line)).collect()
}

/// Formats a value and its interval, such as `1040 [800 1350]`.
fn with_interval(estimate: Estimate) -> String {
    format!("{} [{} {}]", number(estimate.value), number(estimate.low), number(estimate.high))
}

/// Formats a number with three significant digits, such as `1040`, `12.3`, `0.0123`, `1.23e7`.
fn number(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let rounded = format!("{number:.*e}", DIGITS as usize - 1);
    let exponent = rounded.split_once('e').and_then(|(_, digits)| digits.parse::<i32>().ok());
    match exponent {
        Some(exponent @ -3..6) => {
            let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
            format!("{number:.decimals$}")
        }
        _ => rounded,
    }
}
