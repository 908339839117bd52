//! `flipwave golden`.

use crate::arguments::GoldenArguments;
use crate::failure::Failure;
use crate::{campaign, output};
use flipwave_campaigns::save_golden;
use std::io::Write;

pub fn golden(arguments: &GoldenArguments) -> Result<(), Failure> {
    let campaign = campaign::read(&arguments.file, &arguments.variant, arguments.seed)?;
    let saved = save_golden(&campaign, arguments.all, &arguments.out)?;
    let mut out = output::stdout();
    let instructions: u64 = saved.wave_instructions.iter().sum();
    writeln!(out, "completed on {}: {instructions} wave instructions", saved.target)?;
    for output in &saved.outputs {
        let file = arguments.out.join(&output.file);
        let (name, count, element) = (&output.name, output.count, &output.element);
        write!(out, "{name}: {}, {count} elements of type {element}", file.display())?;
        match &output.expected {
            None => writeln!(out)?,
            Some(difference) => writeln!(
                out,
                "; wrong: {}, maximum error {:?}, relative {:?}",
                difference.elements_wrong, difference.max_abs_error, difference.max_rel_error
            )?,
        }
    }
    match saved.unexpected.into_iter().next() {
        Some(unexpected) => Err(Failure::Unexpected(Box::new(unexpected))),
        None => Ok(()),
    }
}
