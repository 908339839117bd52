//! Runs the command-line programs of batch systems.

use super::error::SubmitError;
use flipwave_host::child::ChildError;
use std::process::Command;

/// Runs a program and returns its output. `hint` says what to do if the program does not exist.
///
/// # Errors
/// [`SubmitError::Missing`], [`SubmitError::Refused`].
pub(super) fn output(
    program: &str,
    arguments: &[String],
    hint: &'static str,
) -> Result<String, SubmitError> {
    let mut command = Command::new(program);
    let output =
        flipwave_host::child::run(command.args(arguments), b"").map_err(|error| match error {
            ChildError::Run(reason) => {
                SubmitError::Missing { program: program.to_owned(), reason, hint }
            }
            ChildError::Interrupted => SubmitError::Interrupted { program: program.to_owned() },
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let messages = [output.stderr.as_slice(), output.stdout.as_slice()].concat();
    Err(SubmitError::Refused {
        command: format!("{program} {}", arguments.join(" ")),
        message: format!("{}: {}", output.status, String::from_utf8_lossy(&messages).trim()),
    })
}
