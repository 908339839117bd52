//! `flipwave inspect`.

mod text;

use crate::Failure;
use crate::arguments::InspectArguments;
use flipwave_hooks::inspect::{Inspection, Wanted, inspect as look};
use std::error::Error;
use std::io::{ErrorKind, Write};

pub fn inspect(arguments: &InspectArguments) -> Result<(), Failure> {
    let inspection = read(arguments).map_err(|reason| Failure::File {
        file: arguments.file.display().to_string(),
        reason: reason.to_string(),
    })?;
    let text = if arguments.json {
        serde_json::to_string_pretty(&inspection).map_err(std::io::Error::from)? + "\n"
    } else {
        text::text(&inspection, arguments)
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

fn read(arguments: &InspectArguments) -> Result<Inspection, Box<dyn Error>> {
    let bytes = std::fs::read(&arguments.file)?;
    let object = flipwave_codeobj::open(&bytes, arguments.target.as_ref())?;
    let wanted = Wanted {
        kernel: arguments.kernel.clone(),
        cfg: arguments.cfg,
        registers: arguments.registers,
        lines: arguments.lines,
    };
    Ok(look(&object, &wanted)?)
}
