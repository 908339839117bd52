//! The bug of gfx90a that 64-bit shifts read a wrong amount from the last VGPR of an allocation granule of
//! eight.

use super::registers::register;
use crate::{Generation, Inst, Opcode, Register, Target, Vgpr};

/// The register from which a 64-bit shift reads a wrong amount unless the next register is allocated too
/// (LLVM, `fixShift64HighRegBug`): the last register of eight, on gfx90a.
pub fn shift64_high_reg_bug(target: &Target, inst: &Inst) -> Option<Vgpr> {
    let is_shift =
        target.generation() == Generation::Gfx90a && inst.operation.opcode() == Opcode::VShift64;
    let amount = inst.sources().next().filter(|_| is_shift)?;
    match register(&amount.value)?.first {
        Register::Vgpr(Vgpr(n)) if n % 8 == 7 => Some(Vgpr(n)),
        _ => None,
    }
}
