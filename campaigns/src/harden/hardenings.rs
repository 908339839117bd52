//! Results of a hardening.

use super::ranking::RankedInstruction;
use crate::platform::LockstepSummary;
use crate::run::Report;
use flipwave_analysis::HardenedPoint;
use std::path::PathBuf;

/// Results of a hardening.
#[derive(Clone, Debug)]
pub struct Hardenings {
    /// Report of the campaign on the plain program.
    pub plain: Report,
    /// Measurements for each budget.
    pub points: Vec<HardenedPoint>,
    /// Budgets that are too small to duplicate any instruction, each with the smallest sufficient budget.
    pub too_small: Vec<(f64, f64)>,
    /// Executed instructions that can be duplicated, ordered by the fraction of SDC that they cause.
    pub ranking: Vec<RankedInstruction>,
    /// Lockstep comparison of plain and hardened code, for each budget.
    pub steps: Vec<LockstepSummary>,
    /// Faults that caused SDC although they hit a result that is duplicated and compared. There must be
    /// none.
    pub escapes: Vec<Escape>,
    /// Files written: tables and code objects.
    pub files: Vec<PathBuf>,
}

/// A fault that a comparison should have detected.
#[derive(Clone, Debug, PartialEq)]
pub struct Escape {
    /// Budget of the hardened program.
    pub budget: f64,
    /// Index of the injection.
    pub index: u64,
    /// Fault site.
    pub site: String,
}
