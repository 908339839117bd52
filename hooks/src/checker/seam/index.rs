//! Where the guest may be in GPR-index mode (gfx8 and gfx9): vector instructions that are inserted
//! there would go to other registers than they name.

use crate::flow::Program;
use flipwave_isa::{Family, Inst, Opcode};

/// For each instruction, whether the mode may be on before it.
pub fn may_be_indexed(program: &Program) -> Vec<bool> {
    let mut before = vec![false; program.instructions.len()];
    if !program.instructions.iter().any(switches_on) {
        return before;
    }
    for function in program.functions.iter().filter(|own| !own.unresolved.is_empty()) {
        let range = function.instructions.start as usize..function.instructions.end as usize;
        before.get_mut(range).into_iter().flatten().for_each(|own| *own = true);
    }
    let mut waiting: Vec<usize> = (0..program.blocks.len()).collect();
    while let Some(block) = waiting.pop() {
        let Some(block) = program.blocks.get(block) else { continue };
        let mut on = before.get(block.instructions.start as usize).copied().unwrap_or_default();
        for index in block.instructions.clone() {
            let index = index as usize;
            let (Some(known), Some(inst)) =
                (before.get_mut(index), program.instructions.get(index))
            else {
                continue;
            };
            *known |= on;
            on = match inst.operation.opcode() {
                Opcode::SSetGprIdxOff => false,
                _ => *known || switches_on(inst),
            };
        }
        for edge in &block.successors {
            let Some(next) = program.blocks.get(edge.to.0 as usize) else { continue };
            if let Some(known) = before.get_mut(next.instructions.start as usize)
                && on
                && !*known
            {
                *known = true;
                waiting.push(edge.to.0 as usize);
            }
        }
    }
    before
}

/// The number of MODE among the hardware registers.
const MODE: u32 = 1;

/// `s_set_gpr_idx_on`, or a write of the bit of MODE that says so (Vega ISA, "MODE register",
/// GPR_IDX_EN, bit 27).
fn switches_on(inst: &Inst) -> bool {
    let field = inst.immediate.unwrap_or_default() as u32;
    let (register, offset, size) = (field & 0x3f, field >> 6 & 0x1f, (field >> 11 & 0x1f) + 1);
    inst.operation.opcode() == Opcode::SSetGprIdxOn
        || (inst.operation.is(Family::SetRegister) && register == MODE && offset + size > 27)
}
