//! `flipwave launch`.

use crate::arguments::LaunchArguments;
use crate::failure::Failure;
use crate::{campaign, output};
use flipwave_campaigns::Launched;
use flipwave_host::output::printable;
use std::io::Write;

pub fn launch(arguments: &LaunchArguments) -> Result<(), Failure> {
    let campaign = campaign::read(&arguments.file, &arguments.variant, arguments.seed)?;
    let Launched { gpu, kernels, outputs } = flipwave_campaigns::launch(&campaign, &arguments.out)?;
    let mut out = output::stdout();
    writeln!(out, "completed on {}: {}", printable(&gpu), printable(&kernels.join(", ")))?;
    for (buffer, file) in outputs {
        writeln!(out, "{}: {}", printable(&buffer), file.display())?;
    }
    Ok(())
}
