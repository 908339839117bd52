//! `--strict` and `--races`.

use crate::arguments::StrictArgument;
use crate::failure::Failure;
use crate::output::say;
use flipwave_campaigns::{Campaign, StrictOptions};

/// With `--strict`, checks a golden run and prints its violations of hardware rules.
///
/// # Errors
/// [`Failure::RuleViolations`] if there are any.
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
        count => Err(Failure::RuleViolations { count }),
    }
}
