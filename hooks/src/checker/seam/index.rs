//! Where the guest may be in GPR-index mode (gfx8 and gfx9): vector instructions that are inserted
//! there would go to other registers than they name.

use crate::flow::{BlockIndex, Disassembly, IndexVec, InstIndex};
use flipwave_isa::{Family, Inst, Opcode};

/// For each instruction, whether the mode may be on before it.
pub fn may_be_indexed(program: &Disassembly) -> IndexVec<InstIndex, bool> {
    let mut before = IndexVec::filled(false, program.instructions.len());
    if !program.instructions.iter().any(switches_on) {
        return before;
    }
    for function in program.functions.iter().filter(|own| !own.unresolved.is_empty()) {
        before[function.instructions].fill(true);
    }
    let mut waiting: Vec<BlockIndex> = program.blocks.indices().iter().collect();
    while let Some(block) = waiting.pop() {
        let block = &program.blocks[block];
        let mut on = before[block.instructions.start];
        for (index, inst) in program.insts_of(block.instructions) {
            before[index] |= on;
            on = match inst.operation.opcode() {
                Opcode::SSetGprIdxOff => false,
                _ => before[index] || switches_on(inst),
            };
        }
        for edge in &block.successors {
            let first = program.blocks[edge.to].instructions.start;
            if on && !std::mem::replace(&mut before[first], true) {
                waiting.push(edge.to);
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
