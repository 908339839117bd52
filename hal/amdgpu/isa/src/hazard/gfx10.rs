//! Hazards of gfx10. Hardware resolves data dependences of vector operations; the remaining hazards are
//! bugs of some processors, most of which an instruction mitigates.

use super::group::*;
use super::{Condition, Expiry, Hazard, Registers, hazard, mitigated, side};
use crate::{Inst, Value};

/// gfx1010 to gfx1013.
pub(super) const GFX10_1: &[&[Hazard]] = &[
    DENORMAL_MODE,
    PERMLANE_AFTER_COMPARE,
    SCALAR_WRITE_AFTER_MEMORY,
    VECTOR_WRITE_AFTER_SMEM,
    EXEC_WRITE_AFTER_READ,
    super::pattern::LDS_BRANCH_MEMORY,
    BUFFER_AFTER_IMAGE,
];
/// gfx1030 to gfx1036.
pub(super) const GFX10_3: &[&[Hazard]] = &[DENORMAL_MODE];

#[rustfmt::skip]
const DENORMAL_MODE: &[Hazard] = &[
    Hazard {
        expired_by: &[Expiry { group: VALU, count: 1 }, Expiry { group: WAITS, count: 1 }],
        ..hazard(3, "a floating-point atomic, s_denorm_mode follows",
            side(FP_ATOMIC, Registers::None), side(DENORM_MODE, Registers::None), Condition::Always)
    },
];

/// Mitigated by moving the source to itself; `v_nop` does not suffice.
#[rustfmt::skip]
pub(super) const PERMLANE_AFTER_COMPARE: &[Hazard] = &[
    mitigated(move_of_source, &[Expiry { group: VALU_NOT_NOP, count: 1 }],
        "v_cmpx writes EXEC, v_permlane follows",
        side(COMPARE_WRITES_EXEC, Registers::None), side(PERMLANE, Registers::None), Condition::Always),
];

#[rustfmt::skip]
const SCALAR_WRITE_AFTER_MEMORY: &[Hazard] = &[
    mitigated(|_| "s_waitcnt_depctr depctr_vm_vsrc(0)".into(), &[
            Expiry { group: VALU, count: 1 },
            Expiry { group: WAITS_FOR_ALL, count: 1 },
            Expiry { group: VM_VSRC_0, count: 1 },
        ],
        "memory reads a scalar register, SALU or SMEM overwrites it",
        side(MEMORY, Registers::ScalarsRead), side(SCALAR, Registers::ScalarDestinations), Condition::Overlap),
];

#[rustfmt::skip]
const VECTOR_WRITE_AFTER_SMEM: &[Hazard] = &[
    mitigated(|_| "s_mov_b32 null, 0".into(), &[Expiry { group: RESOLVES_SMEM_READ, count: 1 }],
        "SMEM reads a scalar register, VALU overwrites it",
        side(SMEM, Registers::ScalarsRead), side(VALU, Registers::ScalarsWritten), Condition::Overlap),
];

#[rustfmt::skip]
const EXEC_WRITE_AFTER_READ: &[Hazard] = &[
    mitigated(|_| "s_waitcnt_depctr depctr_sa_sdst(0)".into(), &[
            Expiry { group: VALU_WRITES_SCALAR, count: 1 },
            Expiry { group: SA_SDST_0, count: 1 },
        ],
        "an instruction other than VALU reads EXEC, VALU overwrites it",
        side(READS_EXEC, Registers::None), side(VALU_WRITES_EXEC, Registers::None), Condition::Always),
];

/// LLVM's feature NSAtoVMEMBug.
#[rustfmt::skip]
const BUFFER_AFTER_IMAGE: &[Hazard] = &[
    hazard(1, "a long image instruction with non-sequential addresses, a buffer access with bit 1 or 2 of its \
            offset set follows",
        side(NSA_IMAGE, Registers::None), side(BUFFER_AT_NSA_BUG_OFFSET, Registers::None), Condition::Always),
];

/// A move of the first vector source of `victim` to itself.
fn move_of_source(victim: &Inst) -> String {
    let mut registers = victim.sources().filter_map(|source| match source.value {
        Value::Register(range) if range.first.is_per_lane() => Some(range.first),
        _ => None,
    });
    let source = registers.next().map_or("v0".into(), |register| register.to_string());
    format!("v_mov_b32 {source}, {source}")
}
