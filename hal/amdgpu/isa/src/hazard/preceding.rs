//! Instructions executed before another one, with their distances in wait states.

use crate::{Inst, Opcode};

/// An instruction executed before another one.
#[derive(Clone, Copy, Debug)]
pub struct Preceding<'a> {
    /// The preceding instruction.
    pub inst: &'a Inst,
    /// Wait states between the two.
    pub distance: u8,
}

/// The instructions executed before another one, nearest first, with their distances.
pub fn preceding<'a>(nearest_first: impl IntoIterator<Item = &'a Inst>) -> Vec<Preceding<'a>> {
    let mut distance = 0u8;
    let with_distance = |inst| {
        let preceding = Preceding { inst, distance };
        distance = distance.saturating_add(wait_states(inst));
        preceding
    };
    nearest_first.into_iter().map(with_distance).collect()
}

/// The number of wait states of an instruction.
pub fn wait_states(inst: &Inst) -> u8 {
    match inst.operation.opcode() {
        Opcode::SNop => (inst.immediate.unwrap_or_default() & 0xf) as u8 + 1,
        _ => 1,
    }
}
