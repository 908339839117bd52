//! Judges runs of an application by comparison with the golden run.

use super::comparison::{Compared, Comparison, Similarity};
use super::error::ApplicationError;
use super::golden::ApplicationGolden;
use super::process::Ended;
use super::run::ApplicationRun;
use super::{Application, runtime_errors, verify};
use crate::outputs::compare::Difference;
use crate::run::due_cause::DueCause;
use std::sync::atomic::AtomicBool;

/// Result of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum JudgedRun {
    /// The run ended as expected, with correct outputs.
    Matches {
        /// `true` if the outputs are equal except for ignored lines, and no check was needed.
        is_exact: bool,
        /// Differences within the tolerances.
        difference: Difference,
    },
    /// The run ended as expected, with wrong outputs.
    Differs {
        /// The first difference with its location.
        first: String,
        /// Differences of the outputs.
        difference: Difference,
    },
    /// The run ended in another way, such as with another exit code.
    Ended(Ended),
    /// The run printed an error of AMD's runtime or of CUDA, in this line.
    RuntimeError(String),
}

/// Outputs of a run that ended as expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgedOutputs {
    /// `true` if all outputs are correct.
    pub is_correct: bool,
    /// Differences from the golden run.
    pub difference: Difference,
}

impl JudgedRun {
    /// Returns the outputs of a run that ended as expected.
    ///
    /// # Errors
    /// The cause of DUE of any other run.
    pub fn outputs(&self) -> Result<JudgedOutputs, DueCause> {
        match self {
            JudgedRun::Matches { difference, .. } => {
                Ok(JudgedOutputs { is_correct: true, difference: *difference })
            }
            JudgedRun::Differs { difference, .. } => {
                Ok(JudgedOutputs { is_correct: false, difference: *difference })
            }
            JudgedRun::Ended(ended) => Err(ended.due_cause()),
            JudgedRun::RuntimeError(_) => Err(DueCause::RuntimeError),
        }
    }
}

impl Application {
    /// Judges a run. Compares outputs and runs checks only if the run ended as the golden run and
    /// printed no runtime error: a crash is never masked or SDC, regardless of its outputs.
    ///
    /// A runtime error takes precedence over the signal or exit code that followed it, and counts
    /// even if the program ended as expected.
    ///
    /// # Errors
    /// [`ApplicationError`] if outputs cannot be read, or a check neither accepts nor rejects the
    /// run.
    pub fn judge(
        &self,
        golden: &ApplicationGolden,
        ran: &ApplicationRun,
        interrupt: &AtomicBool,
    ) -> Result<JudgedRun, ApplicationError> {
        let (Ended::Exited(_) | Ended::Signalled(_)) = ran.ended else {
            return Ok(JudgedRun::Ended(ran.ended));
        };
        let first = &golden.first;
        let error = runtime_errors::find(&first.stderr, &ran.stderr)
            .or_else(|| runtime_errors::find(&first.stdout, &ran.stdout));
        if let Some(error) = error {
            return Ok(JudgedRun::RuntimeError(error));
        }
        if ran.ended != Ended::Exited(self.exit_code) {
            return Ok(JudgedRun::Ended(ran.ended));
        }
        let mut compared = self.compare_outputs(first, ran)?;
        for comparison in &self.comparisons {
            if let Comparison::Check(check) = comparison {
                let is_accepted = verify::accepts(self, check, first, ran, interrupt)?;
                compared = compared.and(checked(check.program.display(), is_accepted));
            }
        }
        let Compared { similarity, difference } = compared;
        Ok(match similarity {
            Similarity::Exact => JudgedRun::Matches { is_exact: true, difference },
            Similarity::Within => JudgedRun::Matches { is_exact: false, difference },
            Similarity::Different(first) => JudgedRun::Differs { first, difference },
        })
    }
}

/// Result of a check, which has no numbers of wrong elements.
fn checked(program: impl std::fmt::Display, is_accepted: bool) -> Compared {
    let similarity = if is_accepted {
        Similarity::Within
    } else {
        Similarity::Different(format!("the check {program} rejects the run"))
    };
    Compared { similarity, difference: Difference::default() }
}
