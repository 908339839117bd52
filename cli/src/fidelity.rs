//! `flipwave fidelity`, and the fidelity report of other commands.

use crate::arguments::FidelityArguments;
use crate::failure::Failure;
use crate::long_runs::LongRuns;
use crate::output::say;
use crate::table::{row, table};
use crate::{campaign, output};
use flipwave_host::output::printable;
use flipwave_injector::{DecisionRecord, DoubtRecord, FidelityRecord};
use std::io::Write;

pub fn fidelity(arguments: &FidelityArguments) -> Result<(), Failure> {
    let campaign = campaign::read(&arguments.file, &arguments.variant, arguments.seed)?;
    let long_runs = LongRuns::start(&campaign.cancellation, say);
    let fidelity = flipwave_campaigns::fidelity(&campaign)?;

    drop(long_runs);
    writeln!(output::stdout(), "{}", text(&fidelity))?;
    Ok(())
}

/// Formats a table of the operations, the decisions that depend on inexact results, and a one-line
/// summary.
pub fn text(fidelity: &FidelityRecord) -> String {
    let mut rows = vec![row(&["executed", "operation", "fidelity"])];
    rows.extend(fidelity.operations.iter().map(|record| {
        row(&[&record.executions.to_string(), &record.operation, &record.fidelity.to_string()])
    }));
    let mut paragraphs = vec![table(&rows)];
    if !fidelity.decisions.is_empty() {
        paragraphs.push(fidelity.decisions.iter().map(decision).collect());
    }
    paragraphs.push(fidelity.to_string());
    paragraphs.join("\n")
}

/// Formats a decision that depends on an inexact result, on two lines.
fn decision(record: &DecisionRecord) -> String {
    let DecisionRecord { fidelity, kernel, pc, line, instruction, registers, decides, times } =
        record;
    let doubt = match fidelity {
        DoubtRecord::NotSettled => "that is not settled",
        DoubtRecord::WithinError => "within a stated error",
    };
    let line = line.as_ref().map_or(String::new(), |line| format!(", {line}"));
    let (kernel, line) = (printable(kernel), printable(&line));
    format!(
        "a result {doubt} {decides}: {} in {instruction}\n  at {pc} of {kernel}{line}; \
         occurrences: {times}\n",
        registers.join(", ")
    )
}
