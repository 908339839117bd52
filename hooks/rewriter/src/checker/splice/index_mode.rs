//! Original instructions that may execute in GPR-index mode (gfx8 and gfx9). Vector instructions
//! inserted there would access other registers than they name.

use crate::flow::{BlockIndex, Disassembly, IndexVec, InstIndex};
use flipwave_isa::{Family, Inst, Opcode};

/// GPR-index mode of the original program before an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GuestIndexMode {
    /// Off on all paths.
    #[default]
    Off,
    /// On on all paths.
    On,
    /// Unknown.
    Unknown,
}

/// GPR-index mode before each instruction.
pub fn modes(program: &Disassembly) -> IndexVec<InstIndex, GuestIndexMode> {
    let mut before = IndexVec::filled(GuestIndexMode::Off, program.instructions.len());
    if !program.instructions.iter().any(may_switch_on) {
        return before;
    }
    let mut entries: IndexVec<BlockIndex, Option<GuestIndexMode>> =
        IndexVec::filled(None, program.blocks.len());
    for function in program.functions.iter().filter(|function| !function.unresolved.is_empty()) {
        entries[function.blocks].fill(Some(GuestIndexMode::Unknown));
    }
    let mut waiting: Vec<BlockIndex> = Vec::new();
    let mut starts = program.blocks.indices().iter();
    // `starts` adds the first block of each function, and unreachable blocks.
    while let Some(at) = waiting.pop().or_else(|| starts.next()) {
        let mut mode = *entries[at].get_or_insert(GuestIndexMode::Off);
        let block = &program.blocks[at];
        for (index, inst) in program.insts_of(block.instructions) {
            before[index] = mode;
            mode = match inst.operation.opcode() {
                Opcode::SSetGprIdxOff => GuestIndexMode::Off,
                Opcode::SSetGprIdxOn => GuestIndexMode::On,
                _ if may_switch_on(inst) => GuestIndexMode::Unknown,
                _ => mode,
            };
        }
        for edge in &block.successors {
            let joined = match entries[edge.to] {
                Some(known) if known != mode => GuestIndexMode::Unknown,
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

/// Returns `true` for `s_set_gpr_idx_on`, and for writes of MODE that include GPR_IDX_EN (Vega ISA,
/// "MODE register", bit 27).
fn may_switch_on(inst: &Inst) -> bool {
    let field = inst.immediate.unwrap_or_default() as u32;
    let (register, offset, size) = (field & 0x3f, field >> 6 & 0x1f, (field >> 11 & 0x1f) + 1);
    inst.operation.opcode() == Opcode::SSetGprIdxOn
        || (inst.operation.is(Family::SetRegister) && register == MODE && offset + size > 27)
}
