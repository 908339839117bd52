//! `--strict` and `--races`.

use crate::Failure;
use crate::arguments::StrictArgument;
use crate::output::say;
use flipwave_campaigns::{Campaign, StrictOptions};

/// Prints what breaks the rules of the hardware, if that is asked for.
///
/// # Errors
/// [`Failure::RulesBroken`] if anything does.
pub fn check(argument: &StrictArgument, campaign: &Campaign) -> Result<(), Failure> {
    if !argument.strict {
        return Ok(());
    }
    let options = StrictOptions { races: argument.races };
    let violations = flipwave_campaigns::strict(campaign, options)?;
    for violation in &violations {
        say(format!("{violation}\n"));
    }
    match violations.len() {
        0 => Ok(()),
        count => Err(Failure::RulesBroken { count }),
    }
}
