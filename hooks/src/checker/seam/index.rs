//! Where the guest may be in GPR-index mode (gfx8 and gfx9): vector instructions that are inserted
//! there would go to other registers than they name.

use crate::flow::Program;
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
pub fn modes(program: &Program) -> Vec<Mode> {
    let mut before = vec![Mode::Off; program.instructions.len()];
    if !program.instructions.iter().any(switches_on) {
        return before;
    }
    let mut entries: Vec<Option<Mode>> = vec![None; program.blocks.len()];
    for function in program.functions.iter().filter(|own| !own.unresolved.is_empty()) {
        let range = function.blocks.start as usize..function.blocks.end as usize;
        entries.get_mut(range).into_iter().flatten().for_each(|own| *own = Some(Mode::Either));
    }
    let mut waiting: Vec<usize> = Vec::new();
    let mut starts = 0..program.blocks.len();
    // The first block of a function, and whatever no way leads to.
    while let Some(at) = waiting.pop().or_else(|| starts.next()) {
        let (Some(block), Some(entry)) = (program.blocks.get(at), entries.get_mut(at)) else {
            continue;
        };
        let entry = entry.get_or_insert(Mode::Off);
        let mut mode = *entry;
        for index in block.instructions.clone() {
            let index = index as usize;
            let (Some(known), Some(inst)) =
                (before.get_mut(index), program.instructions.get(index))
            else {
                continue;
            };
            *known = mode;
            mode = match inst.operation.opcode() {
                Opcode::SSetGprIdxOff => Mode::Off,
                Opcode::SSetGprIdxOn => Mode::On,
                _ if switches_on(inst) => Mode::Either,
                _ => mode,
            };
        }
        for edge in &block.successors {
            let Some(next) = entries.get_mut(edge.to.0 as usize) else { continue };
            let joined = match *next {
                Some(known) if known != mode => Mode::Either,
                _ => mode,
            };
            if next.replace(joined) != Some(joined) {
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
