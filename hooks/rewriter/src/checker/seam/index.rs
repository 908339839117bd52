//! Where the guest may be in GPR-index mode (gfx8 and gfx9): vector instructions that are inserted
//! there would go to other registers than they name.

use crate::flow::{BlockIndex, Disassembly, IndexVec, InstIndex};
use flipwave_isa::{Family, Inst, Opcode};

/// What is known of the mode before an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It is off.
    #[default]
    Off,
    /// It is on.
    On,
    /// It may be on.
    Either,
}

/// For each instruction, the mode before it.
pub fn modes(program: &Disassembly) -> IndexVec<InstIndex, Mode> {
    let mut before = IndexVec::filled(Mode::Off, program.instructions.len());
    if !program.instructions.iter().any(switches_on) {
        return before;
    }
    let mut entries: IndexVec<BlockIndex, Option<Mode>> =
        IndexVec::filled(None, program.blocks.len());
    for function in program.functions.iter().filter(|own| !own.unresolved.is_empty()) {
        entries[function.blocks].fill(Some(Mode::Either));
    }
    let mut waiting: Vec<BlockIndex> = Vec::new();
    let mut starts = program.blocks.indices().iter();
    // The first block of a function, and whatever no way leads to.
    while let Some(at) = waiting.pop().or_else(|| starts.next()) {
        let mut mode = *entries[at].get_or_insert(Mode::Off);
        let block = &program.blocks[at];
        for (index, inst) in program.insts_of(block.instructions) {
            before[index] = mode;
            mode = match inst.operation.opcode() {
                Opcode::SSetGprIdxOff => Mode::Off,
                Opcode::SSetGprIdxOn => Mode::On,
                _ if switches_on(inst) => Mode::Either,
                _ => mode,
            };
        }
        for edge in &block.successors {
            let joined = match entries[edge.to] {
                Some(known) if known != mode => Mode::Either,
                _ => mode,
            };
            if entries[edge.to].replace(joined) != Some(joined) {
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
