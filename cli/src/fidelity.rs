//! `flipwave fidelity`, and what others print of the fidelity of a run.

use crate::arguments::FidelityArguments;
use crate::long_runs::LongRuns;
use crate::output::say;
use crate::table::{row, table};
use crate::{Failure, campaign, output};
use flipwave_host::output::printable;
use flipwave_injector::{DecisionRecord, DoubtRecord, FidelityRecord};
use std::io::Write;

pub fn fidelity(arguments: &FidelityArguments) -> Result<(), Failure> {
    let campaign = campaign::read(&arguments.file, &arguments.variant, arguments.seed)?;
    let long_runs = LongRuns::of(&campaign.attendance, say);
    let fidelity = flipwave_campaigns::fidelity(&campaign)?;

    drop(long_runs);
    writeln!(output::stdout(), "{}", text(&fidelity))?;
    Ok(())
}

/// A table of the operations, what is decided, and all of it in a line.
pub fn text(fidelity: &FidelityRecord) -> String {
    let mut rows = vec![row(&["executed", "operation", "fidelity"])];
    rows.extend(
        fidelity.operations.iter().map(|own| {
            row(&[&own.executions.to_string(), &own.operation, &own.fidelity.to_string()])
        }),
    );
    let mut paragraphs = vec![table(&rows)];
    if !fidelity.decisions.is_empty() {
        paragraphs.push(fidelity.decisions.iter().map(decision).collect());
    }
    paragraphs.push(fidelity.to_string());
    paragraphs.join("\n")
}

/// What is decided, on two lines.
fn decision(own: &DecisionRecord) -> String {
    let DecisionRecord { fidelity, kernel, pc, line, instruction, registers, decides, times } = own;
    let doubt = match fidelity {
        DoubtRecord::NotSettled => "that is not settled",
        DoubtRecord::WithinError => "within a stated error",
    };
    let line = line.as_ref().map_or(String::new(), |line| format!(", {line}"));
    let (kernel, line) = (printable(kernel), printable(&line));
    format!(
        "a result {doubt} {decides}: {} in {instruction}\n  at {pc} of {kernel}{line}; \
         times met: {times}\n",
        registers.join(", ")
    )
}
