//! `flipwave rates`.

use crate::failure::Failure;
use crate::results_arguments::RatesArguments;
use crate::{output, report};
use flipwave_device::demangled_kernel;
use std::io::Write;

pub fn rates(arguments: &RatesArguments) -> Result<(), Failure> {
    let (about, table) = flipwave_campaigns::about(&arguments.folder)?;
    let aggregates = report::aggregates(&arguments.folder, about, table)?;
    // Argument parsing accepts only names of tables.
    let text = aggregates
        .table(&arguments.by, |name| demangled_kernel(name).into_owned())
        .unwrap_or_default();
    Ok(output::stdout().write_all(text.as_bytes())?)
}
