//! Hazards of gfx10. The hardware stops for the data of vector operations; what is left are
//! defects of some processors, which an instruction mitigates.

use super::group::*;
use super::{End, Hazard, Meeting, Part, hazard, mitigated, side};
use crate::{Inst, Value};

/// gfx1010 to gfx1013.
pub(super) const GFX10_1: &[&[Hazard]] = &[
    DENORMAL_MODE,
    PERMLANE_BEHIND_COMPARE,
    SCALAR_WRITE_BEHIND_MEMORY,
    VECTOR_WRITE_BEHIND_SMEM,
    EXEC_WRITE_BEHIND_READ,
    super::pattern::LDS_BRANCH_MEMORY,
    BUFFER_BEHIND_IMAGE,
];
/// gfx1030 to gfx1036.
pub(super) const GFX10_3: &[&[Hazard]] = &[DENORMAL_MODE];

#[rustfmt::skip]
const DENORMAL_MODE: &[Hazard] = &[
    Hazard {
        ends: &[End { group: VALU, count: 1 }, End { group: WAITS, count: 1 }],
        ..hazard(3, "a floating-point atomic, s_denorm_mode follows",
            side(FP_ATOMIC, Part::Nothing), side(DENORM_MODE, Part::Nothing), Meeting::Always)
    },
];

/// The source is moved to itself: `v_nop` would not do.
#[rustfmt::skip]
pub(super) const PERMLANE_BEHIND_COMPARE: &[Hazard] = &[
    mitigated(move_of_source, &[End { group: VALU_NOT_NOP, count: 1 }],
        "v_cmpx writes EXEC, v_permlane follows",
        side(COMPARE_WRITES_EXEC, Part::Nothing), side(PERMLANE, Part::Nothing), Meeting::Always),
];

#[rustfmt::skip]
const SCALAR_WRITE_BEHIND_MEMORY: &[Hazard] = &[
    mitigated(|_| "s_waitcnt_depctr depctr_vm_vsrc(0)".into(), &[
            End { group: VALU, count: 1 },
            End { group: WAITS_FOR_ALL, count: 1 },
            End { group: VM_VSRC_0, count: 1 },
        ],
        "memory reads a scalar register, SALU or SMEM overwrites it",
        side(MEMORY, Part::ScalarsRead), side(SCALAR, Part::ScalarDestinations), Meeting::Overlap),
];

#[rustfmt::skip]
const VECTOR_WRITE_BEHIND_SMEM: &[Hazard] = &[
    mitigated(|_| "s_mov_b32 null, 0".into(), &[End { group: BEHIND_SMEM, count: 1 }],
        "SMEM reads a scalar register, VALU overwrites it",
        side(SMEM, Part::ScalarsRead), side(VALU, Part::ScalarsWritten), Meeting::Overlap),
];

#[rustfmt::skip]
const EXEC_WRITE_BEHIND_READ: &[Hazard] = &[
    mitigated(|_| "s_waitcnt_depctr depctr_sa_sdst(0)".into(), &[
            End { group: VALU_WRITES_SCALAR, count: 1 },
            End { group: SA_SDST_0, count: 1 },
        ],
        "an instruction other than VALU reads EXEC, VALU overwrites it",
        side(READS_EXEC, Part::Nothing), side(VALU_WRITES_EXEC, Part::Nothing), Meeting::Always),
];

/// LLVM's feature NSAtoVMEMBug.
#[rustfmt::skip]
const BUFFER_BEHIND_IMAGE: &[Hazard] = &[
    hazard(1, "a long image instruction with scattered addresses, a buffer access with bit 1 or 2 of its \
            offset set follows",
        side(SCATTERED_IMAGE, Part::Nothing), side(BUFFER_AT_ODD_OFFSET, Part::Nothing), Meeting::Always),
];

fn move_of_source(victim: &Inst) -> String {
    let registers = victim.sources().filter_map(|source| match source.value {
        Value::Register(range) if range.first.is_per_lane() => Some(range.first),
        _ => None,
    });
    let source = registers.map(|register| register.to_string()).next().unwrap_or("v0".into());
    format!("v_mov_b32 {source}, {source}")
}
