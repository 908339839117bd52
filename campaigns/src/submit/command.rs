//! Engines' own programs.

use super::error::SubmitError;
use std::process::Command;

/// Runs a program to its successful end, and gives what it printed. `hint` says what to do where there
/// is none.
///
/// # Errors
/// [`SubmitError::Missing`], [`SubmitError::Refused`].
pub(super) fn output(
    program: &str,
    arguments: &[String],
    hint: &'static str,
) -> Result<String, SubmitError> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|reason| SubmitError::Missing { program: program.to_owned(), reason, hint })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = [output.stderr.as_slice(), output.stdout.as_slice()].concat();
    Err(SubmitError::Refused {
        command: format!("{program} {}", arguments.join(" ")),
        message: format!("{}: {}", output.status, String::from_utf8_lossy(&said).trim()),
    })
}
