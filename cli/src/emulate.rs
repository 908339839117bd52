//! `flipwave emulate`.

use crate::arguments::EmulateArguments;
use crate::table::{row, table};
use crate::{Failure, campaign, output};
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
    same(&emulation)
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
    cells.extend(rows.iter().map(|own| {
        row(&[&own.instruction, &own.kernel, &own.pc, &own.line, &own.executions.to_string()])
    }));
    table(&cells)
}

fn executed(rows: &[Executed]) -> String {
    let mut cells = vec![row(&["version", "kernel", "waves", "instructions", "per wave"])];
    cells.extend(rows.iter().map(|own| {
        let (waves, instructions) = (own.waves.to_string(), own.instructions.to_string());
        row(&[own.version, &own.kernel, &waves, &instructions, &format!("{:.1}", own.per_wave)])
    }));
    table(&cells)
}

/// Demands that the version in software computes the same.
fn same(emulation: &Emulation) -> Result<(), Failure> {
    let differs = emulation.differences.iter().filter(|(_, own)| own.elements_wrong > 0);
    let differs = differs.map(|(name, own)| format!("{} elements of `{name}`", own.elements_wrong));
    let outputs: Vec<String> = differs.collect();
    match outputs.is_empty() {
        true => Ok(()),
        false => Err(Failure::NotSame { outputs: outputs.join(", ") }),
    }
}
