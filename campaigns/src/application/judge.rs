//! What a run of an application came to, beside a run without a fault.

use super::comparison::{Compared, Comparison, Similarity};
use super::error::ApplicationError;
use super::golden::ApplicationGolden;
use super::process::Ended;
use super::run::Ran;
use super::{Application, runtime_errors, verify};
use crate::outputs::compare::Difference;
use crate::run::due_cause::DueCause;
use std::sync::atomic::AtomicBool;

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Judged {
    /// It ended as it must, with right outputs.
    Matches {
        /// Whether they are the same: what is ignored aside, and where no check had to decide.
        is_exact: bool,
        /// How they differ within the tolerances.
        difference: Difference,
    },
    /// It ended as it must, with wrong outputs.
    Differs {
        /// The first difference, and where it is.
        first: String,
        /// How they differ.
        difference: Difference,
    },
    /// It ended in another way, be it with another exit code.
    Ended(Ended),
    /// It printed an error of AMD's runtime: the line.
    RuntimeError(String),
}

impl Judged {
    /// Returns whether the outputs of a completed run are correct, and how they differ.
    ///
    /// # Errors
    /// The cause of DUE of a run that did not complete.
    pub fn completed(&self) -> Result<(bool, Difference), DueCause> {
        match self {
            Judged::Matches { difference, .. } => Ok((true, *difference)),
            Judged::Differs { difference, .. } => Ok((false, *difference)),
            Judged::Ended(ended) => Err(ended.due_cause()),
            Judged::RuntimeError(_) => Err(DueCause::RuntimeError),
        }
    }
}

impl Application {
    /// What a run came to. Outputs are looked at, and checks asked, only where it ended as the run
    /// without a fault did and reported no error: a crash is never right, nor silently wrong,
    /// whatever it left and whatever a check would say of that.
    ///
    /// An error that the runtime printed says more than the signal or the exit code that followed
    /// it, and stands above them; it counts also where the program went on and ended well.
    ///
    /// # Errors
    /// [`ApplicationError`] if outputs cannot be read, or a check gives no answer.
    pub fn judge(
        &self,
        golden: &ApplicationGolden,
        ran: &Ran,
        interrupt: &AtomicBool,
    ) -> Result<Judged, ApplicationError> {
        let (Ended::Exited(_) | Ended::Signalled(_)) = ran.ended else {
            return Ok(Judged::Ended(ran.ended));
        };
        let first = &golden.first;
        let error = runtime_errors::find(&first.stderr, &ran.stderr)
            .or_else(|| runtime_errors::find(&first.stdout, &ran.stdout));
        if let Some(error) = error {
            return Ok(Judged::RuntimeError(error));
        }
        if ran.ended != Ended::Exited(self.exit_code) {
            return Ok(Judged::Ended(ran.ended));
        }
        let mut compared = self.compare_outputs(first, ran)?;
        for comparison in &self.comparisons {
            if let Comparison::Check(check) = comparison {
                let is_right = verify::accepts(self, check, first, ran, interrupt)?;
                compared = compared.and(checked(check.program.display(), is_right));
            }
        }
        let Compared { similarity, difference } = compared;
        Ok(match similarity {
            Similarity::Exact => Judged::Matches { is_exact: true, difference },
            Similarity::Within => Judged::Matches { is_exact: false, difference },
            Similarity::Different(first) => Judged::Differs { first, difference },
        })
    }
}

/// What a check found. It does not say how many elements are wrong, nor by how much.
fn checked(program: impl std::fmt::Display, is_right: bool) -> Compared {
    let similarity = match is_right {
        true => Similarity::Within,
        false => Similarity::Different(format!("the check {program} calls it wrong")),
    };
    Compared { similarity, difference: Difference::default() }
}
