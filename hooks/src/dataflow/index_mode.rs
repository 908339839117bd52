//! Where GPR-index mode may be on (gfx8 and gfx9): vector arithmetic then reads and writes
//! registers at a distance from those it names, by M0 (Vega ISA, "VGPR indexing").

use crate::flow::{BlockIndex, Disassembly, Function, IndexVec, InstIndex};
use flipwave_isa::{Generation, Inst, Opcode};
use std::collections::BTreeSet;

/// By instruction: whether the mode may be on when it runs. It is off where functions begin; in
/// those that are not understood it may be on anywhere.
pub fn index_mode(program: &Disassembly) -> IndexVec<InstIndex, bool> {
    let mut on = IndexVec::filled(false, program.instructions.len());
    let has_mode = (Generation::Gfx8..=Generation::Gfx940).contains(&program.target.generation());
    if !has_mode || !program.instructions.iter().any(|inst| switch(inst) == Some(true)) {
        return on;
    }
    for function in &program.functions {
        match function.unresolved.is_empty() {
            true => mark(program, function, &mut on),
            false => on[function.instructions].fill(true),
        }
    }
    on
}

fn mark(program: &Disassembly, function: &Function, on: &mut IndexVec<InstIndex, bool>) {
    let mut entries: BTreeSet<BlockIndex> = BTreeSet::new();
    let mut open: Vec<BlockIndex> = function.blocks.iter().rev().collect();
    while let Some(at) = open.pop() {
        let block = &program.blocks[at];
        let mut state = entries.contains(&at);
        for (index, inst) in program.insts_of(block.instructions) {
            on[index] |= state;
            state = switch(inst).unwrap_or(state);
        }
        for edge in &block.successors {
            if state && entries.insert(edge.to) {
                open.push(edge.to);
            }
        }
    }
}

/// Whether an instruction may switch the mode on, or switches it off.
fn switch(inst: &Inst) -> Option<bool> {
    /// `hwreg` of MODE, and the bit of it that is the mode.
    const MODE: i64 = 1;
    const ENABLE: i64 = 27;
    match (inst.operation.opcode(), inst.immediate) {
        (Opcode::SSetGprIdxOn, _) => Some(true),
        (Opcode::SSetGprIdxOff, _) => Some(false),
        (Opcode::SSetGprIdxMode, Some(bits)) => Some(bits & 0xf != 0),
        (Opcode::SSetreg | Opcode::SSetregImm32, Some(field)) => {
            let (register, offset, size) = (field & 63, field >> 6 & 31, (field >> 11 & 31) + 1);
            let covers = register == MODE && (offset..offset + size).contains(&ENABLE);
            covers.then_some(true)
        }
        _ => None,
    }
}
