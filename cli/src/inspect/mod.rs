//! `flipwave inspect`.

mod json;
mod text;

use crate::failure::Failure;
use crate::output;
use crate::tool_arguments::InspectArguments;
use flipwave_campaigns::map_code_object;
use flipwave_hooks::inspect::{InspectOptions, Inspector};
use std::io::{BufWriter, Write};

pub fn inspect(arguments: &InspectArguments) -> Result<(), Failure> {
    let object = map_code_object(&arguments.file, arguments.target.as_ref())?;
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
