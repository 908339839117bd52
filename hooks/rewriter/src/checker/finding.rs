//! Results of the checker: the violations it found, or a summary of the proof.

use flipwave_isa::{Pc, Register};
use std::fmt;
use std::time::Duration;

/// A rule of the checker. [`crate::checker`] defines the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckRule {
    /// Each original instruction is at its claimed address and has its original targets.
    Original,
    /// All code is claimed, and control reaches the original successors.
    Control,
    /// Original instructions find the original values in live registers.
    Registers,
    /// No register of an outstanding memory operation is read or overwritten.
    Waits,
    /// Instructions are as far apart as the hardware's hazards require.
    Hazards,
    /// Groups of instructions are contiguous.
    Groups,
    /// Kernels allocate the registers and the scratch that their code uses.
    Allocation,
    /// No inserted instruction triggers a known bug of the processor.
    ChipBugs,
}

impl CheckRule {
    /// The rule's name in messages.
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

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The violated rule.
    pub rule: CheckRule,
    /// The affected original instruction, if there is one.
    pub old: Option<Pc>,
    /// Address in the new code.
    pub new: Pc,
    /// The affected register, if there is one.
    pub register: Option<Register>,
    /// Description of the violation.
    pub message: String,
}

impl Finding {
    /// A finding at an address of the new code.
    pub(super) fn at(rule: CheckRule, new: u64, message: impl Into<String>) -> Finding {
        Finding { rule, old: None, new: Pc(new), register: None, message: message.into() }
    }

    /// Adds the address of the affected original instruction.
    pub(super) fn for_original(self, old: Pc) -> Finding {
        Finding { old: Some(old), ..self }
    }

    /// Adds the affected register.
    pub(super) fn with_register(self, register: Register) -> Finding {
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
        write!(f, ": {}", self.message)
    }
}

/// Summary of a successful check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Number of original instructions found at their claimed addresses.
    pub originals: usize,
    /// Number of inserted instructions.
    pub inserted: usize,
    /// Number of splices that were executed symbolically.
    pub splices: usize,
    /// Number of registers proven to be preserved, summed over the ends of all splices. A vector
    /// register counts twice if its lanes outside EXEC are live too.
    pub registers: usize,
    /// Number of instructions whose preceding paths were searched for hazards.
    pub hazards: usize,
    /// Duration of the check.
    pub cost: Duration,
}
