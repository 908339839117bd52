//! `flipwave compare-published`.

use crate::failure::Failure;
use crate::output::say;
use crate::results_arguments::ComparePublishedArguments;
use crate::table::{row, table};
use crate::{output, report};
use flipwave_analysis::{
    Correlation, OutcomeAgreement, RateAgreement, agreement, read_published, write_agreement,
};
use std::io::Write;
use std::path::Path;

pub fn compare_published(arguments: &ComparePublishedArguments) -> Result<(), Failure> {
    let failed = |file: &Path, reason: &dyn ToString| {
        let file = file.display().to_string();
        Failure::File { file, reason: reason.to_string() }
    };
    let path = arguments.published.as_path();
    let file = flipwave_host::input::open_lines(path).map_err(|error| failed(path, &error))?;
    let published = read_published(file).map_err(|error| failed(path, &error))?;
    let mut measured = Vec::new();
    for folder in &arguments.folders {
        let (about, table) = flipwave_campaigns::about(folder)?;
        match report::aggregates(folder, about, table)?.measured() {
            Some(rates) => measured.push(rates),
            None => say(format!("ignoring {}: no injections", folder.display())),
        }
    }
    let all = agreement(&published, &measured).map_err(|error| failed(path, &error))?;
    let mut output = output::stdout();
    write!(output, "{}", table(&rates(&all)))?;
    writeln!(output, "\nRates in percent, intervals of the campaigns in brackets.")?;
    for agreement in &all {
        writeln!(output, "{}", in_words(agreement))?;
    }
    if let Some(path) = &arguments.csv {
        let mut table = Vec::new();
        write_agreement(&all, &mut table).map_err(|error| failed(path, &error))?;
        flipwave_host::output::replace(path, &table).map_err(|error| failed(path, &error))?;
        writeln!(output, "table: {}", path.display())?;
    }
    Ok(())
}

fn rates(all: &[OutcomeAgreement]) -> Vec<Vec<String>> {
    let heading = row(&["workload", "outcome", "injections", "rate", "", "published", ""]);
    let line = |compared: &RateAgreement| {
        let RateAgreement { published, total, measured, .. } = compared;
        let percent = |rate: f64| format!("{:.1}", 100.0 * rate);
        let interval = measured.interval;
        vec![
            published.workload.clone(),
            published.outcome.to_string(),
            total.to_string(),
            percent(measured.rate),
            format!("[{:>5} {:>5}]", percent(interval.low), percent(interval.high)),
            percent(published.rate),
            if compared.is_inside() { "inside" } else { "outside" }.to_owned(),
        ]
    };
    let lines = all.iter().flat_map(|agreement| &agreement.rates).map(line);
    std::iter::once(heading).chain(lines).collect()
}

/// Describes the agreement of one outcome in a line.
fn in_words(agreement: &OutcomeAgreement) -> String {
    let inside = agreement.rates.iter().filter(|compared| compared.is_inside()).count();
    let (outcome, count) = (agreement.outcome, agreement.rates.len());
    let difference = 100.0 * agreement.mean_difference;
    let correlation = match agreement.correlation {
        Some(Correlation { rho, low, high, p }) => {
            format!("Spearman's rank correlation {rho:.2} [{low:.2} {high:.2}], p = {p:.3}")
        }
        None => "too few distinct rates for a rank correlation".to_owned(),
    };
    format!(
        "{outcome}: {inside} of {count} inside, mean difference {difference:.1} percentage points; \
         {correlation}"
    )
}
