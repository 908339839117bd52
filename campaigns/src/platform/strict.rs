//! Golden runs on the strict level.

use flipwave_injector::{GoldenError, Workload};
use flipwave_sim::strict::StrictOptions;
use std::fmt;

/// Errors returned by runs on the strict level.
#[derive(Debug, thiserror::Error)]
pub enum StrictError {
    /// A dispatch does not complete.
    #[error(transparent)]
    Golden(#[from] GoldenError),
    /// The strict level of the platform does not find races.
    #[error("`--races` is available for AMD GPUs only; remove it")]
    NoRaces,
}

/// A rule of a platform that a program breaks at an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleViolation {
    /// Name of the rule.
    pub rule: String,
    /// Address of the instruction.
    pub pc: String,
    /// The report: the instruction, what was found, where, and the remedy.
    pub report: String,
}

impl fmt::Display for RuleViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.report)
    }
}

/// Checks rules of a platform, on its simulated GPUs.
pub trait StrictMethod {
    /// Runs a workload without a fault and returns the violations of rules, one per rule and instruction of a dispatch.
    ///
    /// # Errors
    /// [`StrictError`] if a dispatch does not complete, or the platform does not have an option.
    fn golden(
        &self,
        workload: &Workload,
        options: StrictOptions,
    ) -> Result<Vec<RuleViolation>, StrictError>;
}
