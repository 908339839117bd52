//! A defect of gfx90a: shifts of 64 bits take a wrong amount from the last register of an
//! allocation block of eight.

use super::part::register;
use crate::{Generation, Inst, Opcode, Register, Target, Vgpr};

/// The register from which a shift takes its amount wrongly unless the next register is allocated
/// too (LLVM, `fixShift64HighRegBug`): any that is the last of eight, on gfx90a.
pub fn amount_in_last_register(target: &Target, inst: &Inst) -> Option<Vgpr> {
    let is_shift =
        target.generation() == Generation::Gfx90a && inst.operation.opcode() == Opcode::VShift64;
    let amount = inst.sources().next().filter(|_| is_shift)?;
    match register(&amount.value)?.first {
        Register::Vgpr(Vgpr(n)) if n % 8 == 7 => Some(Vgpr(n)),
        _ => None,
    }
}
