//! `flipwave fidelity`.

use crate::arguments::FidelityArguments;
use crate::long_runs::LongRuns;
use crate::output::say;
use crate::table::{row, table};
use crate::{Failure, campaign, output};
use flipwave_campaigns::DecisionRecord;
use std::io::Write;

pub fn fidelity(arguments: &FidelityArguments) -> Result<(), Failure> {
    let campaign = campaign::read(&arguments.file, arguments.seed)?;
    let long_runs = LongRuns::of(&campaign.attendance, say);
    let fidelity = flipwave_campaigns::fidelity(&campaign)?;

    drop(long_runs);
    let mut rows = vec![row(&["executed", "operation", "fidelity"])];
    rows.extend(
        fidelity
            .operations
            .iter()
            .map(|own| row(&[&own.executions.to_string(), &own.operation, &own.fidelity])),
    );
    let mut output = output::stdout();
    writeln!(output, "{}", table(&rows))?;
    for own in &fidelity.decisions {
        let DecisionRecord { kernel, pc, line, instruction, registers, decides, times } = own;
        let line = line.as_ref().map_or(String::new(), |line| format!(", {line}"));
        writeln!(
            output,
            "a result that is not settled {decides}: {} in {instruction}\n  at {pc} of {kernel}{line}; \
             times met: {times}",
            registers.join(", ")
        )?;
    }
    if !fidelity.decisions.is_empty() {
        writeln!(output)?;
    }
    writeln!(output, "{fidelity}")?;
    Ok(())
}
