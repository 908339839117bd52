//! Runs without a fault.

use super::comparison::{Compared, Comparison, Similarity};
use super::error::ApplicationError;
use super::process::{Ended, Limits};
use super::run::Ran;
use super::{Application, Nondeterminism, tail, verify};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long a run without a fault may take where the campaign file does not say.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How many times the longest run without a fault a run may take where the campaign file does
/// not say.
const TIMEOUT_FACTOR: u32 = 10;

/// The least such time. Short runs vary by more than that factor on a busy machine.
const LEAST_TIMEOUT: Duration = Duration::from_secs(30);

/// The runs without a fault.
#[derive(Debug)]
pub struct ApplicationGolden {
    /// The first of them: others are compared with it.
    pub first: Ran,
    /// What a run with a fault may take.
    pub limits: Limits,
}

impl Application {
    /// Runs the application without a fault, as often as the campaign file says, with
    /// `environment` added to its own.
    ///
    /// Without `timeout` in the campaign file, later runs may take ten times as long as the longest
    /// of these, and 30 s at least.
    ///
    /// # Errors
    /// [`ApplicationError`] if the runs do not end as they must, if an output cannot be compared,
    /// if a check calls one wrong, or if they differ: with `nondeterminism: error` in anything
    /// that is compared and not ignored, with `allow` by more than the tolerances.
    pub fn golden(
        &self,
        environment: &BTreeMap<OsString, OsString>,
        interrupt: &AtomicBool,
    ) -> Result<ApplicationGolden, ApplicationError> {
        let mut limits = Limits {
            timeout: self.timeout.unwrap_or(LONGEST),
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
            self.agree(&self.compare_outputs(&first, &next)?)?;
            longest = longest.max(next.elapsed);
        }
        if self.timeout.is_none() {
            limits.timeout = (longest * TIMEOUT_FACTOR).max(LEAST_TIMEOUT);
        }
        Ok(ApplicationGolden { first, limits })
    }

    /// Checks that a run without a fault ended as it must and left what is to be compared.
    fn check_golden(&self, ran: &Ran) -> Result<(), ApplicationError> {
        if ran.ended != Ended::Exited(self.exit_code) {
            let advice = match ran.ended {
                Ended::Exited(code) => {
                    format!("; if that is right, say so with `exit_code: {code}`")
                }
                Ended::Signalled(_) => String::new(),
                Ended::TimedOut => "; give it more, with `timeout`".to_owned(),
                Ended::OutOfMemory => "; allow it more, with `memory`".to_owned(),
                Ended::OutputTooLarge => "; allow it more, with `output`".to_owned(),
            };
            let stderr = tail(&ran.stderr);
            let ended = ran.ended.to_string();
            return Err(ApplicationError::GoldenEnded { ended, advice, stderr });
        }
        for comparison in &self.comparisons {
            if let Comparison::Output { output, format } = comparison {
                let checked = match ran.output(output)? {
                    Some(bytes) => format.check(&bytes),
                    None => Err("is no file after a run without a fault".to_owned()),
                };
                checked.map_err(|message| ApplicationError::GoldenOutput {
                    output: output.to_string(),
                    message,
                })?;
            }
        }
        Ok(())
    }

    /// Checks that the user's checks call a run without a fault right.
    fn accept_golden(
        &self,
        first: &Ran,
        ran: &Ran,
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

    /// The outputs of a run, in words, if nothing of them could be compared and no check is asked.
    ///
    /// # Errors
    /// [`ApplicationError::Read`].
    pub(crate) fn compares_nothing(&self, ran: &Ran) -> Result<Option<String>, ApplicationError> {
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

    /// Checks another run without a fault as [`Application::golden`] does.
    ///
    /// # Errors
    /// As [`Application::golden`].
    pub(crate) fn confirm(
        &self,
        golden: &ApplicationGolden,
        ran: &Ran,
        interrupt: &AtomicBool,
    ) -> Result<(), ApplicationError> {
        self.check_golden(ran)?;
        self.accept_golden(&golden.first, ran, interrupt)?;
        self.agree(&self.compare_outputs(&golden.first, ran)?)
    }

    /// Checks that two runs without a fault are as like as they must be.
    fn agree(&self, compared: &Compared) -> Result<(), ApplicationError> {
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

    /// Compares the outputs of a run with those of another.
    pub(super) fn compare_outputs(
        &self,
        golden: &Ran,
        ran: &Ran,
    ) -> Result<Compared, ApplicationError> {
        let mut compared = Compared::default();
        for comparison in &self.comparisons {
            if let Comparison::Output { output, format } = comparison {
                let own = ran.output(output)?;
                let golden = golden.output(output)?.unwrap_or_default();
                compared = compared.and(format.compare(output, &golden, own.as_deref()));
            }
        }
        Ok(compared)
    }
}
