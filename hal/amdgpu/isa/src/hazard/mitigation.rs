//! What inserted code puts between instructions so that no hazard is broken.

use super::{Hazard, Preceding, breaches};
use crate::Inst;
use std::fmt;

/// What keeps a hazard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mitigation {
    /// This many wait states.
    WaitStates(u8),
    /// An instruction, as the assembler writes it.
    Instruction(String),
}

impl Mitigation {
    /// The assembler's text: one line, or several `s_nop`.
    pub fn text(&self) -> String {
        /// Wait states of one `s_nop`, as LLVM emits them.
        const MOST: u8 = 8;
        match self {
            Mitigation::Instruction(text) => text.clone(),
            Mitigation::WaitStates(states) => {
                let whole = (0..states / MOST).map(|_| MOST);
                let rest = Some(states % MOST).filter(|rest| *rest > 0);
                let nops = whole.chain(rest).map(|states| format!("s_nop {}", states - 1));
                nops.collect::<Vec<_>>().join("\n")
            }
        }
    }
}

impl fmt::Display for Mitigation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mitigation::WaitStates(1) => f.write_str("1 wait state is"),
            Mitigation::WaitStates(states) => write!(f, "{states} wait states are"),
            Mitigation::Instruction(text) => write!(f, "`{text}` is"),
        }
    }
}

/// What must be inserted directly before `inst` so that it breaks no hazard of these families
/// ([`Rules::hazards`](crate::Rules::hazards)), given what is executed before it, the nearest first
/// ([`super::preceding`]); wait states that are there already are not asked for again. Instructions
/// come in a fixed order, wait states last. Where control may come to `inst` on several ways, ask
/// for each of them.
pub fn mitigations(
    families: &[&'static [Hazard]],
    before: &[Preceding<'_>],
    inst: &Inst,
) -> Vec<Mitigation> {
    let mut mitigations = Vec::new();
    let mut missing = 0;
    for breach in families.iter().flat_map(|family| breaches(family, before, inst)) {
        match breach.needed {
            Mitigation::WaitStates(states) => {
                let distance = before.get(breach.trigger).map_or(0, |trigger| trigger.distance);
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
