//! `flipwave rates`.

use crate::results_arguments::RatesArguments;
use crate::{Failure, output, report};
use flipwave_injector::demangled_kernel;
use std::io::Write;

pub fn rates(arguments: &RatesArguments) -> Result<(), Failure> {
    let (about, table) = flipwave_campaigns::about(&arguments.folder)?;
    let counted = report::counted(&arguments.folder, about, table)?;
    // The command line takes names of tables only.
    let text = counted
        .table(&arguments.by, |name| demangled_kernel(name).into_owned())
        .unwrap_or_default();
    Ok(output::stdout().write_all(text.as_bytes())?)
}
