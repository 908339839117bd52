//! Where GPR-index mode may be on (gfx8 and gfx9): vector arithmetic then reads and writes
//! registers at a distance from those it names, by M0 (Vega ISA, "VGPR indexing").

use crate::flow::{Function, Program};
use flipwave_isa::{Generation, Inst, Opcode};

/// By instruction: whether the mode may be on when it runs. It is off where functions begin; in
/// those that are not understood it may be on anywhere.
pub fn index_mode(program: &Program) -> Vec<bool> {
    let mut on = vec![false; program.instructions.len()];
    let has_mode = (Generation::Gfx8..=Generation::Gfx940).contains(&program.target.generation());
    if !has_mode || !program.instructions.iter().any(|inst| switch(inst) == Some(true)) {
        return on;
    }
    for function in &program.functions {
        let range = function.instructions.start as usize..function.instructions.end as usize;
        match on.get_mut(range).filter(|_| !function.unresolved.is_empty()) {
            Some(own) => own.fill(true),
            None => mark(program, function, &mut on),
        }
    }
    on
}

fn mark(program: &Program, function: &Function, on: &mut [bool]) {
    let first = function.blocks.start;
    let mut entries = vec![false; function.blocks.len()];
    let mut open: Vec<u32> = function.blocks.clone().rev().collect();
    while let Some(at) = open.pop() {
        let local = (at - first) as usize;
        let Some((block, entry)) = program.blocks.get(at as usize).zip(entries.get(local)) else {
            continue;
        };
        let mut state = *entry;
        for (index, inst) in program.insts_of(&block.instructions) {
            if let Some(own) = on.get_mut(index.0 as usize) {
                *own |= state;
            }
            state = switch(inst).unwrap_or(state);
        }
        for edge in &block.successors {
            let next = edge.to.0.checked_sub(first).and_then(|at| entries.get_mut(at as usize));
            if let Some(next) = next.filter(|next| state && !**next) {
                *next = true;
                open.push(edge.to.0);
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
