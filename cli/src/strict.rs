//! `--strict`.

use crate::Failure;
use crate::arguments::StrictArgument;
use flipwave_campaigns::Campaign;

/// Prints what breaks the rules of the hardware, if that is asked for.
///
/// # Errors
/// [`Failure::RulesBroken`] if anything does.
pub fn check(argument: &StrictArgument, campaign: &Campaign) -> Result<(), Failure> {
    if !argument.strict {
        return Ok(());
    }
    let violations = flipwave_campaigns::strict(campaign)?;
    for violation in &violations {
        eprintln!("{violation}\n");
    }
    match violations.len() {
        0 => Ok(()),
        count => Err(Failure::RulesBroken { count }),
    }
}
