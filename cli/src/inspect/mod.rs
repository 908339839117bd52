//! `flipwave inspect`.

mod json;
mod text;

use crate::failure::Failure;
use crate::output;
use crate::tool_arguments::InspectArguments;
use flipwave_campaigns::{ObjectFileError, map_code_object, read_code_object_at};
use flipwave_hooks::inspect::{InspectOptions, Inspector};
use std::io::{BufWriter, Write};
use std::path::Path;

pub fn inspect(arguments: &InspectArguments) -> Result<(), Failure> {
    let object = match arguments.at {
        None => map_code_object(&arguments.file, arguments.target.as_ref()),
        Some(at) => read_code_object_at(&arguments.file, arguments.target.as_ref(), at),
    };
    let object = object.map_err(|error| selectable(error, &arguments.file))?;
    let wanted = InspectOptions {
        kernel: arguments.kernel.clone(),
        cfg: arguments.cfg,
        registers: arguments.registers,
        lines: arguments.lines,
    };
    let inspector = Inspector::new(&object, &wanted).map_err(|reason| Failure::File {
        file: arguments.file.display().to_string(),
        reason: reason.to_string(),
    })?;
    let mut out = BufWriter::new(output::stdout());
    if arguments.json {
        json::write(&mut out, &inspector)?;
    } else {
        text::write(&mut out, &inspector, arguments)?;
    }
    Ok(out.flush()?)
}

/// Adds the options that select a code object to the error about a file with several.
fn selectable(error: ObjectFileError, file: &Path) -> Failure {
    if !error.is_ambiguous() {
        return error.into();
    }
    // The message starts with the file.
    let text = error.to_string();
    let file = file.display().to_string();
    let reason = text.strip_prefix(&format!("{file}: ")).unwrap_or(&text);
    let options = if reason.contains(" at byte ") { "--target or --at BYTE" } else { "--target" };
    Failure::File { file, reason: format!("{reason}; select one with {options}") }
}
