//! `flipwave launch`.

use crate::arguments::LaunchArguments;
use crate::{Failure, campaign, output};
use flipwave_campaigns::Launched;
use flipwave_host::output::shown;
use std::io::Write;

pub fn launch(arguments: &LaunchArguments) -> Result<(), Failure> {
    let campaign = campaign::read(&arguments.file, &arguments.variant, arguments.seed)?;
    let Launched { target, kernels, outputs } =
        flipwave_campaigns::launch(&campaign, &arguments.out)?;
    let mut out = output::stdout();
    writeln!(out, "completed on {target}: {}", shown(&kernels.join(", ")))?;
    for (buffer, file) in outputs {
        writeln!(out, "{}: {}", shown(&buffer), file.display())?;
    }
    Ok(())
}
