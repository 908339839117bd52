//! Instructions inserted to avoid hazards.

use super::{Hazard, Preceding, violations};
use crate::Inst;
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

/// The mitigations to insert directly before `inst` so that it violates no hazard of these families
/// ([`Rules::hazards`](crate::Rules::hazards)), given the instructions executed before it, nearest first
/// ([`super::preceding`]). Wait states that exist already are subtracted. Instructions
/// come in a fixed order, wait states last. If several paths lead to `inst`, call this for each of
/// them.
pub fn mitigations(
    families: &[&'static [Hazard]],
    before: &[Preceding<'_>],
    inst: &Inst,
) -> Vec<Mitigation> {
    let mut mitigations = Vec::new();
    let mut missing = 0;
    for violation in families.iter().flat_map(|family| violations(family, before, inst)) {
        match violation.needed {
            Mitigation::WaitStates(states) => {
                let distance = before.get(violation.trigger).map_or(0, |trigger| trigger.distance);
                missing = missing.max(states.saturating_sub(distance));
            }
            instruction if mitigations.contains(&instruction) => {}
            instruction => mitigations.push(instruction),
        }
    }
    if missing > 0 {
        mitigations.push(Mitigation::WaitStates(missing));
    }
    mitigations
}
