//! Reports of strict execution.

use super::PtxRule;
use flipwave_arch::{LaneMask, Pc, SourceLine};
use flipwave_device::WaveId;
use std::collections::HashMap;
use std::fmt;

/// A rule broken at an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxViolation {
    /// The rule.
    pub rule: PtxRule,
    /// Address of the instruction in the original code.
    pub pc: Pc,
    /// Text of the instruction.
    pub text: String,
    /// Kernel or device function that contains the instruction.
    pub function: String,
    /// Source line of the instruction, if known.
    pub line: Option<SourceLine>,
    /// Details of the first violation.
    pub found: String,
    /// Wave that broke the rule first.
    pub wave: WaveId,
    /// Lanes that broke the rule first.
    pub lanes: LaneMask,
    /// Number of violations at this instruction.
    pub count: u64,
}

/// Violations of a dispatch, one per rule and instruction, in order of occurrence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub violations: Vec<PtxViolation>,
    /// Index of the violation for each rule and instruction.
    known: HashMap<(PtxRule, Pc), usize>,
}

impl Report {
    /// Adds a violation, or increments the count of a known one.
    pub fn add(&mut self, rule: PtxRule, pc: Pc, new: impl FnOnce() -> PtxViolation) {
        match self.known.get(&(rule, pc)) {
            Some(index) => self.violations[*index].count += 1,
            None => {
                self.known.insert((rule, pc), self.violations.len());
                self.violations.push(new());
            }
        }
    }
}

impl fmt::Display for PtxViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PtxViolation { rule, pc, text, function, found, wave, lanes, count, .. } = self;
        writeln!(f, "{rule} at {pc}: {text}")?;
        if let Some(line) = &self.line {
            writeln!(f, "  source: {}:{} in `{function}`", line.file, line.line)?;
        } else {
            writeln!(f, "  source: `{function}`")?;
        }
        writeln!(f, "  found:  {found}")?;
        let first = lanes.lanes().next().map(|lane| lane.to_string()).unwrap_or_default();
        let number = lanes.count();
        writeln!(
            f,
            "  where:  {wave}, {number} lanes starting at lane {first}; occurrences: {count}"
        )?;
        writeln!(f, "  fix:    {}", rule.advice())?;
        write!(f, "  rule:   {}", rule.source())
    }
}
