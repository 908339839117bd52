//! Golden runs of applications.

use super::comparison::{Compared, Comparison, Similarity};
use super::error::ApplicationError;
use super::process::{Ended, Limits};
use super::run::ApplicationRun;
use super::{Application, Nondeterminism, tail, verify};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Default time limit of a golden run.
const GOLDEN_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Default time limit of faulty runs, relative to the longest golden run.
const TIMEOUT_FACTOR: u32 = 10;

/// Minimum of the default time limit. Short runs vary by more than the factor on a busy machine.
const MIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Golden runs of an application.
#[derive(Debug)]
pub struct ApplicationGolden {
    /// The first golden run, with which other runs are compared.
    pub first: ApplicationRun,
    /// Limits of faulty runs.
    pub limits: Limits,
}

impl Application {
    /// Executes the configured number of golden runs with `environment` added to the application's
    /// environment.
    ///
    /// Without `timeout` in the campaign file, the time limit of faulty runs is ten times the
    /// longest golden run, and at least 30 s.
    ///
    /// # Errors
    /// [`ApplicationError`] if a run does not end as expected, if an output cannot be compared, if
    /// a check rejects a run, or if the runs differ: with `nondeterminism: error` in any compared
    /// output except ignored lines, with `allow` by more than the tolerances.
    pub fn golden(
        &self,
        environment: &BTreeMap<OsString, OsString>,
        interrupt: &AtomicBool,
    ) -> Result<ApplicationGolden, ApplicationError> {
        let mut limits = Limits {
            timeout: self.timeout.unwrap_or(GOLDEN_TIMEOUT),
            memory: self.memory,
            output: self.output,
        };
        let first = self.run(environment, &limits, interrupt)?;
        self.check_golden(&first)?;
        self.accept_golden(&first, &first, interrupt)?;
        let mut longest = first.elapsed;
        for _ in 1..self.golden_runs {
            let next = self.run(environment, &limits, interrupt)?;
            self.check_golden(&next)?;
            self.accept_golden(&first, &next, interrupt)?;
            self.check_similarity(&self.compare_outputs(&first, &next)?)?;
            longest = longest.max(next.elapsed);
        }
        if self.timeout.is_none() {
            limits.timeout = (longest * TIMEOUT_FACTOR).max(MIN_TIMEOUT);
        }
        Ok(ApplicationGolden { first, limits })
    }

    /// Checks that a golden run ended as expected, and that its outputs have their formats.
    fn check_golden(&self, ran: &ApplicationRun) -> Result<(), ApplicationError> {
        if ran.ended != Ended::Exited(self.exit_code) {
            let advice = match ran.ended {
                Ended::Exited(code) => {
                    format!("; if this is expected, set `exit_code: {code}`")
                }
                Ended::Signalled(_) => String::new(),
                Ended::TimedOut => "; increase the limit with `timeout`".to_owned(),
                Ended::OutOfMemory => "; increase the limit with `memory`".to_owned(),
                Ended::OutputTooLarge => "; increase the limit with `output`".to_owned(),
            };
            let stderr = tail(&ran.stderr);
            let ended = ran.ended.to_string();
            return Err(ApplicationError::GoldenEnded { ended, advice, stderr });
        }
        for comparison in &self.comparisons {
            if let Comparison::Output { output, format } = comparison {
                let checked = match ran.output(output)? {
                    Some(bytes) => format.check(&bytes),
                    None => Err("is not a file after a golden run".to_owned()),
                };
                checked.map_err(|message| ApplicationError::GoldenOutput {
                    output: output.to_string(),
                    message,
                })?;
            }
        }
        Ok(())
    }

    /// Checks that the user's checks accept a golden run.
    fn accept_golden(
        &self,
        first: &ApplicationRun,
        ran: &ApplicationRun,
        interrupt: &AtomicBool,
    ) -> Result<(), ApplicationError> {
        for comparison in &self.comparisons {
            if let Comparison::Check(check) = comparison
                && !verify::accepts(self, check, first, ran, interrupt)?
            {
                return Err(ApplicationError::GoldenRejected { program: check.program.clone() });
            }
        }
        Ok(())
    }

    /// Returns the names of the outputs if all of them are empty for the comparison and there is no
    /// check.
    ///
    /// # Errors
    /// [`ApplicationError::Read`].
    pub(crate) fn empty_outputs(
        &self,
        ran: &ApplicationRun,
    ) -> Result<Option<String>, ApplicationError> {
        let mut empty = Vec::new();
        for comparison in &self.comparisons {
            let Comparison::Output { output, format } = comparison else { return Ok(None) };
            if !format.is_empty(&ran.output(output)?.unwrap_or_default()) {
                return Ok(None);
            }
            empty.push(output.to_string());
        }
        Ok(Some(empty.join(", ")))
    }

    /// Checks another golden run as [`Application::golden`] does.
    ///
    /// # Errors
    /// As [`Application::golden`].
    pub(crate) fn confirm(
        &self,
        golden: &ApplicationGolden,
        ran: &ApplicationRun,
        interrupt: &AtomicBool,
    ) -> Result<(), ApplicationError> {
        self.check_golden(ran)?;
        self.accept_golden(&golden.first, ran, interrupt)?;
        self.check_similarity(&self.compare_outputs(&golden.first, ran)?)
    }

    /// Checks that two golden runs are sufficiently similar.
    fn check_similarity(&self, compared: &Compared) -> Result<(), ApplicationError> {
        match (&compared.similarity, self.nondeterminism) {
            (Similarity::Exact, _) | (Similarity::Within, Nondeterminism::Allow) => Ok(()),
            (Similarity::Different(first), Nondeterminism::Allow) => {
                Err(ApplicationError::GoldenDiffersTooMuch { first: first.clone() })
            }
            (Similarity::Different(first), Nondeterminism::Error) => {
                Err(ApplicationError::GoldenDiffers { first: first.clone() })
            }
            (Similarity::Within, Nondeterminism::Error) => {
                let first = format!(
                    "numbers within the tolerance, by up to {:e}",
                    compared.difference.max_abs_error
                );
                Err(ApplicationError::GoldenDiffers { first })
            }
        }
    }

    /// Compares the outputs of two runs.
    pub(super) fn compare_outputs(
        &self,
        golden: &ApplicationRun,
        ran: &ApplicationRun,
    ) -> Result<Compared, ApplicationError> {
        let mut compared = Compared::default();
        for comparison in &self.comparisons {
            if let Comparison::Output { output, format } = comparison {
                let faulty = ran.output(output)?;
                let golden = golden.output(output)?.unwrap_or_default();
                compared = compared.and(format.compare(output, &golden, faulty.as_deref()));
            }
        }
        Ok(compared)
    }
}
