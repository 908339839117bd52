//! What the checker reports, and what it says when there is nothing to report.

use flipwave_isa::{Pc, Register};
use std::fmt;
use std::time::Duration;

/// A rule of the checker, as the head of [`crate::checker`] states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckRule {
    /// Each original instruction is where it is claimed to be, and refers to what it referred to.
    Original,
    /// All code is claimed, and control goes where it went.
    Control,
    /// Each original instruction finds in its registers what it found there.
    Registers,
    /// Nothing is read or overwritten that a memory operation still has to deliver.
    Waits,
    /// Instructions that the hardware does not keep apart are apart.
    Hazards,
    /// Groups of instructions are whole.
    Groups,
    /// Kernels have the registers and the scratch that their code names.
    Allocation,
    /// No inserted instruction triggers a known bug of the processor.
    ChipBugs,
}

impl CheckRule {
    /// One word for it.
    pub fn name(self) -> &'static str {
        match self {
            CheckRule::Original => "original",
            CheckRule::Control => "control",
            CheckRule::Registers => "registers",
            CheckRule::Waits => "waits",
            CheckRule::Hazards => "hazards",
            CheckRule::Groups => "groups",
            CheckRule::Allocation => "allocation",
            CheckRule::ChipBugs => "chip-bugs",
        }
    }
}

/// A rule that the new code breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: CheckRule,
    /// The original instruction that suffers, where there is one.
    pub old: Option<Pc>,
    /// Where in the new code.
    pub new: Pc,
    /// The register it is about, where it is about one.
    pub register: Option<Register>,
    /// What is wrong.
    pub what: String,
}

impl Finding {
    /// A finding about a place of the new code.
    pub(super) fn at(rule: CheckRule, new: u64, what: impl Into<String>) -> Finding {
        Finding { rule, old: None, new: Pc(new), register: None, what: what.into() }
    }

    /// The same, with the original instruction that it concerns.
    pub(super) fn of(self, old: Pc) -> Finding {
        Finding { old: Some(old), ..self }
    }

    /// The same, with the register that it concerns.
    pub(super) fn on(self, register: Register) -> Finding {
        Finding { register: Some(register), ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: new code {}", self.rule.name(), self.new)?;
        if let Some(old) = self.old {
            write!(f, ", original {old}")?;
        }
        if let Some(register) = self.register {
            write!(f, ", {register}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// What was proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Original instructions found at their places.
    pub originals: usize,
    /// Inserted instructions.
    pub inserted: usize,
    /// Ways between original instructions that were executed symbolically.
    pub seams: usize,
    /// Registers, or halves of them, shown to arrive at the end of such a way with the value they
    /// had at its beginning.
    pub registers: usize,
    /// Instructions whose hazards were looked at on all paths back.
    pub hazards: usize,
    /// Time that the check took.
    pub cost: Duration,
}
