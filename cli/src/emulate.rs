//! `flipwave emulate`.

use crate::arguments::EmulateArguments;
use crate::failure::Failure;
use crate::table::{row, table};
use crate::{campaign, output};
use flipwave_campaigns::{EmulatedInstruction, Emulation, Executed};
use flipwave_host::output::FormulaEscaper;
use serde::Serialize;
use std::io::Write as _;
use std::path::Path;

pub fn emulate(arguments: &EmulateArguments) -> Result<(), Failure> {
    let campaign = campaign::read(&arguments.file, &arguments.variant, arguments.seed)?;
    let emulation = flipwave_campaigns::emulate(&campaign)?;
    if let Some(folder) = &arguments.out {
        std::fs::create_dir_all(folder).map_err(|reason| Failure::File {
            file: folder.display().to_string(),
            reason: reason.to_string(),
        })?;
        write(&folder.join("instructions.csv"), &emulation.instructions)?;
        write(&folder.join("executed.csv"), &emulation.executed)?;
    }
    let text = instructions(&emulation.instructions) + "\n" + &executed(&emulation.executed);
    output::stdout().write_all(text.as_bytes())?;
    check_outputs(&emulation)
}

fn write(file: &Path, rows: &[impl Serialize]) -> Result<(), Failure> {
    let write = || -> Result<(), csv::Error> {
        let mut writer =
            csv::Writer::from_writer(FormulaEscaper::new(flipwave_host::output::create(file)?));
        rows.iter().try_for_each(|row| writer.serialize(row))?;
        Ok(writer.flush()?)
    };
    write().map_err(|reason| Failure::Table { file: file.to_owned(), reason })
}

fn instructions(rows: &[EmulatedInstruction]) -> String {
    let mut cells = vec![row(&["instruction", "kernel", "pc", "line", "executions"])];
    cells.extend(rows.iter().map(|emulated| {
        let EmulatedInstruction { instruction, kernel, pc, line, executions, .. } = emulated;
        row(&[instruction, kernel, pc, line, &executions.to_string()])
    }));
    table(&cells)
}

fn executed(rows: &[Executed]) -> String {
    let mut cells = vec![row(&["version", "kernel", "waves", "instructions", "per wave"])];
    cells.extend(rows.iter().map(|executed| {
        let Executed { version, kernel, waves, instructions, per_wave, .. } = executed;
        let (waves, instructions) = (waves.to_string(), instructions.to_string());
        row(&[version, kernel, &waves, &instructions, &format!("{per_wave:.1}")])
    }));
    table(&cells)
}

/// Fails if the software version computes different outputs.
fn check_outputs(emulation: &Emulation) -> Result<(), Failure> {
    let wrong =
        emulation.differences.iter().filter(|(_, difference)| difference.elements_wrong > 0);
    let outputs: Vec<String> = wrong
        .map(|(name, difference)| format!("{} elements of `{name}`", difference.elements_wrong))
        .collect();
    if outputs.is_empty() {
        Ok(())
    } else {
        Err(Failure::OutputsDiffer { outputs: outputs.join(", ") })
    }
}
