//! Check for registers that are not allocated, or no longer.

use super::facts::Facts;
use super::violation::Finding;
use crate::instruction::Op;
use crate::wave::Wave;
use flipwave_isa::{AccVgpr, Register, RegisterRange, Sgpr, Value, Vgpr};

/// Returns a register of the instruction that lies outside the wave's allocation.
pub fn check(
    wave: &Wave,
    op: &Op,
    facts: &Facts,
    sgprs: u16,
    is_deallocated: bool,
) -> Option<Finding> {
    let vgprs = if is_deallocated { 0 } else { wave.vgpr_count };
    let shares_file = wave.machine.accum_offset().is_some();
    let outside = |range: RegisterRange| {
        let (first, allocated) = match range.first {
            // A register tuple may continue into the AccVGPRs.
            Register::Vgpr(Vgpr(n)) if shares_file && !is_deallocated => {
                (n, vgprs + wave.acc_vgpr_count)
            }
            Register::Vgpr(Vgpr(n)) => (n, vgprs),
            Register::AccVgpr(AccVgpr(n)) => (n.into(), wave.acc_vgpr_count),
            Register::Sgpr(Sgpr(n)) => (n.into(), sgprs),
            _ => return None,
        };
        let end: u16 = first + u16::from(range.words);
        (end > allocated).then_some(Finding::NotAllocated { registers: range, allocated })
    };
    if let Some(Vgpr(amount)) = facts.amount_in_last_register
        && amount + 1 >= vgprs
    {
        return Some(Finding::NextNotAllocated { amount: Vgpr(amount), allocated: vgprs });
    }
    let named = op.inst.operands.iter().filter_map(|operand| match operand.value {
        Value::Register(range) => Some(range),
        _ => None,
    });
    named.chain(facts.inst.reads.iter().copied()).find_map(outside)
}
