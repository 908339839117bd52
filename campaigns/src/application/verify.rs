//! Checks: programs of the user that decide whether a run is correct.

use super::command::CommandLine;
use super::error::ApplicationError;
use super::process::{self, Ended, Limits};
use super::run::ApplicationRun;
use super::{Application, tail};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Time limit of a check.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Returns `true` if `check` accepts a run. The check runs in the folder of the run, with the
/// application's environment and the paths of the captured output and of the golden run.
///
/// # Errors
/// [`ApplicationError::Check`] if the check neither accepts nor rejects the run;
/// [`ApplicationError`] if it cannot be run.
pub(super) fn accepts(
    application: &Application,
    check: &CommandLine,
    golden: &ApplicationRun,
    ran: &ApplicationRun,
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
