//! Messages of waves that concern their registers.

use crate::{Generation, Inst, Opcode, Target};

/// Whether an instruction gives the wave's vector registers back: nothing may use them afterwards
/// (LLVM, `SIDefines.h`, `ID_DEALLOC_VGPRS_GFX11Plus`).
pub fn deallocates_vgprs(target: &Target, inst: &Inst) -> bool {
    target.generation() >= Generation::Gfx11
        && inst.operation.opcode() == Opcode::SSendmsg
        && inst.immediate == Some(3)
}
