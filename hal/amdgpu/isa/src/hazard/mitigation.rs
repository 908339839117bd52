//! Instructions inserted to avoid hazards.

use std::fmt;

/// The separation that a hazard requires between its trigger and its victim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mitigation {
    /// A number of wait states.
    WaitStates(u8),
    /// An instruction, as assembler text.
    Instruction(String),
}

impl Mitigation {
    /// The assembler text: one instruction, or one or several `s_nop`.
    pub fn text(&self) -> String {
        /// Maximum wait states of one `s_nop`, as LLVM emits them.
        const MAX_NOP: u8 = 8;
        match self {
            Mitigation::Instruction(text) => text.clone(),
            Mitigation::WaitStates(states) => {
                let full = (0..states / MAX_NOP).map(|_| MAX_NOP);
                let remainder = Some(states % MAX_NOP).filter(|remainder| *remainder > 0);
                let nops = full.chain(remainder).map(|states| format!("s_nop {}", states - 1));
                nops.collect::<Vec<_>>().join("\n")
            }
        }
    }
}

/// Formats the mitigation with its verb: `2 wait states are`.
impl fmt::Display for Mitigation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mitigation::WaitStates(1) => f.write_str("1 wait state is"),
            Mitigation::WaitStates(states) => write!(f, "{states} wait states are"),
            Mitigation::Instruction(text) => write!(f, "`{text}` is"),
        }
    }
}
