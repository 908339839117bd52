//! Messages sent by waves.

use crate::{Generation, Inst, Opcode, Target};

/// Returns `true` if an instruction releases the wave's vector registers, which must not be used after it
/// (LLVM, `SIDefines.h`, `ID_DEALLOC_VGPRS_GFX11Plus`).
pub fn deallocates_vgprs(target: &Target, inst: &Inst) -> bool {
    target.generation() >= Generation::Gfx11
        && inst.operation.opcode() == Opcode::SSendmsg
        && inst.immediate == Some(3)
}
