//! The result of a hardening.

use super::ranking::RankedInstruction;
use crate::run::Report;
use flipwave_analysis::HardenedPoint;
use std::path::PathBuf;

/// What a hardening came to.
#[derive(Clone, Debug)]
pub struct Hardenings {
    /// The campaign on the plain program.
    pub plain: Report,
    /// Each budget.
    pub points: Vec<HardenedPoint>,
    /// Budgets that are too small for anything, each with the least that protects an instruction.
    pub too_small: Vec<(f64, f64)>,
    /// The instructions that the program executes and that can be executed twice, those that bring most
    /// for what they cost first.
    pub ranking: Vec<RankedInstruction>,
    /// What running plain and hardened code side by side has compared, for each budget.
    pub steps: Vec<InStep>,
    /// Faults in results that are executed twice and compared, and are SDC all the same: there must
    /// be none.
    pub escapes: Vec<Escape>,
    /// The files that were written, tables and code objects.
    pub files: Vec<PathBuf>,
}

/// What was compared of plain and hardened code side by side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InStep {
    /// Instructions that both executed.
    pub instructions: u64,
    /// Values of registers that were compared before them.
    pub registers: u64,
    /// The first register that held something else, of a kernel that ended there.
    pub differing: Option<String>,
}

/// A fault that a comparison should have seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Escape {
    /// The budget of the hardened program.
    pub budget: f64,
    /// Its injection.
    pub index: u64,
    /// Its site.
    pub site: String,
}
