//! Checks: the user's own programs that distinguish a right run from a wrong one.

use super::command::CommandLine;
use super::error::ApplicationError;
use super::process::{self, Ended, Limits};
use super::run::Ran;
use super::{Application, tail};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long a check may take.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Whether `check` calls a run right. It runs in the folder that the run left, with the
/// application's environment and the paths of what it printed, and of the run without a fault.
///
/// # Errors
/// [`ApplicationError::Check`] if it gives no answer; [`ApplicationError`] if it cannot be run.
pub(super) fn accepts(
    application: &Application,
    check: &CommandLine,
    golden: &Ran,
    ran: &Ran,
    interrupt: &AtomicBool,
) -> Result<bool, ApplicationError> {
    let (scratch, golden) = (&ran.scratch, &golden.scratch);
    let mut environment = application.environment(scratch);
    let paths: [(&str, PathBuf); 5] = [
        ("FLIPWAVE_STDOUT", scratch.stdout()),
        ("FLIPWAVE_STDERR", scratch.stderr()),
        ("FLIPWAVE_GOLDEN", golden.files()),
        ("FLIPWAVE_GOLDEN_STDOUT", golden.stdout()),
        ("FLIPWAVE_GOLDEN_STDERR", golden.stderr()),
    ];
    environment.extend(paths.map(|(name, path)| (name.into(), path.into())));
    let limits = Limits {
        timeout: TIMEOUT,
        memory: application.memory,
        output: application.output.saturating_mul(2),
    };
    let finished = process::run(check, &environment, scratch, None, &limits, interrupt)?;
    match finished.ended {
        Ended::Exited(0) => Ok(true),
        Ended::Exited(1) => Ok(false),
        ended => Err(ApplicationError::Check {
            program: check.program.clone(),
            ended: ended.to_string(),
            stderr: tail(&finished.stderr),
        }),
    }
}
