//! Instructions that are not implemented.

use flipwave_device::FaultCause;
use flipwave_ptx::Inst;

/// The reason why an instruction is not executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    reason: String,
}

impl Gap {
    /// The opcode, or its form, is not implemented.
    pub fn form() -> Gap {
        Gap { reason: "this form is not supported".to_owned() }
    }

    /// A part of the instruction is not implemented.
    pub fn because(reason: &str) -> Gap {
        Gap { reason: reason.to_owned() }
    }

    /// Description of the gap.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The fault of executing the instruction. No lane has executed a part of it.
    pub fn fault(&self, inst: &Inst) -> FaultCause {
        FaultCause::Unimplemented {
            instruction: inst.text().into(),
            reason: format!("{} ({})", self.reason, inst.position).into(),
        }
    }
}
