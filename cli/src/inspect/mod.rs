//! `flipwave inspect`.

mod text;

use crate::tool_arguments::InspectArguments;
use crate::{Failure, output};
use flipwave_campaigns::read_code_object;
use flipwave_hooks::inspect::{InspectOptions, inspect as look};
use std::io::Write;

pub fn inspect(arguments: &InspectArguments) -> Result<(), Failure> {
    let object = read_code_object(&arguments.file, arguments.target.as_ref())?;
    let wanted = InspectOptions {
        kernel: arguments.kernel.clone(),
        cfg: arguments.cfg,
        registers: arguments.registers,
        lines: arguments.lines,
    };
    let inspection = look(&object, &wanted).map_err(|reason| Failure::File {
        file: arguments.file.display().to_string(),
        reason: reason.to_string(),
    })?;
    let text = if arguments.json {
        serde_json::to_string_pretty(&inspection).map_err(std::io::Error::from)? + "\n"
    } else {
        text::text(&inspection, arguments)
    };
    Ok(output::stdout().write_all(text.as_bytes())?)
}
