//! Hazards of gfx11. What one hazard needs an instruction for, `s_waitcnt_depctr` mostly gives.
//! Not in the table: masks that are overwritten, which [`super::ScalarReads`] keeps, as what was read any
//! time before counts; LDS-direct loads, which carry their waits themselves and are no compute
//! instructions.

use super::gfx10::PERMLANE_BEHIND_COMPARE;
use super::group::*;
use super::matrix::WMMA;
use super::pattern::PARTIAL_FORWARDING;
use super::{End, Hazard, Meeting, Part, hazard, mitigated, side};

/// gfx1100 to gfx1103, waves of 32 lanes.
pub(super) const WAVE32: &[&[Hazard]] =
    &[PERMLANE_BEHIND_COMPARE, TRANS_RESULT, WMMA_RESULT, DEALLOCATION];
/// gfx1100 to gfx1103, waves of 64 lanes.
pub(super) const WAVE64: &[&[Hazard]] =
    &[PERMLANE_BEHIND_COMPARE, TRANS_RESULT, WMMA_RESULT, DEALLOCATION, PARTIAL_FORWARDING];
/// gfx1150 to gfx1153, waves of 32 lanes.
pub(super) const GFX11_5_WAVE32: &[&[Hazard]] =
    &[PERMLANE_BEHIND_COMPARE, WMMA_RESULT, DEALLOCATION];
/// gfx1150 to gfx1153, waves of 64 lanes.
pub(super) const GFX11_5_WAVE64: &[&[Hazard]] =
    &[PERMLANE_BEHIND_COMPARE, WMMA_RESULT, DEALLOCATION, PARTIAL_FORWARDING];

#[rustfmt::skip]
const TRANS_RESULT: &[Hazard] = &[
    mitigated(|_| "s_waitcnt_depctr depctr_va_vdst(0)".into(), &[
            End { group: MEMORY_OR_EXPORT, count: 1 },
            End { group: VA_VDST_0, count: 1 },
            End { group: VALU, count: 6 },
            End { group: TRANS, count: 2 },
        ],
        "a transcendental operation writes a VGPR, VALU reads it",
        side(TRANS, Part::VectorsWritten), side(VALU, Part::VectorsRead),
        Meeting::OverlapOfHalves),
];

#[rustfmt::skip]
pub(super) const WMMA_RESULT: &[Hazard] = &[
    mitigated(|_| "v_nop".into(), &[End { group: VALU, count: 1 }],
        "WMMA writes a VGPR, WMMA reads it as a factor",
        side(WMMA, Part::VectorsWritten), side(WMMA, Part::Factors), Meeting::Overlap),
];

/// LLVM's `SIInsertWaitcnts`, which releases the registers, puts the `s_nop` there.
#[rustfmt::skip]
pub(super) const DEALLOCATION: &[Hazard] = &[
    hazard(1, "an instruction, s_sendmsg MSG_DEALLOC_VGPRS follows",
        side(NOT_NOP, Part::Nothing), side(DEALLOCATES, Part::Nothing), Meeting::Always),
];
