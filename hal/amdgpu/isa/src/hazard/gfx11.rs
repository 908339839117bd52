//! Hazards of gfx11, most of which `s_waitcnt_depctr` mitigates. The table excludes overwritten lane masks,
//! which [`super::SgprHazardState`] tracks because reads at any earlier time count, and LDS-direct loads,
//! which encode their waits and do not occur in compute kernels.

use super::gfx10::PERMLANE_AFTER_COMPARE;
use super::group::*;
use super::matrix::WMMA;
use super::pattern::PARTIAL_FORWARDING;
use super::{Condition, Expiry, Hazard, Registers, hazard, mitigated, side};

/// gfx1100 to gfx1103, wave32.
pub(super) const WAVE32: &[&[Hazard]] =
    &[PERMLANE_AFTER_COMPARE, TRANS_RESULT, WMMA_RESULT, DEALLOCATION];
/// gfx1100 to gfx1103, wave64.
pub(super) const WAVE64: &[&[Hazard]] =
    &[PERMLANE_AFTER_COMPARE, TRANS_RESULT, WMMA_RESULT, DEALLOCATION, PARTIAL_FORWARDING];
/// gfx1150 to gfx1153, wave32.
pub(super) const GFX11_5_WAVE32: &[&[Hazard]] =
    &[PERMLANE_AFTER_COMPARE, WMMA_RESULT, DEALLOCATION];
/// gfx1150 to gfx1153, wave64.
pub(super) const GFX11_5_WAVE64: &[&[Hazard]] =
    &[PERMLANE_AFTER_COMPARE, WMMA_RESULT, DEALLOCATION, PARTIAL_FORWARDING];

#[rustfmt::skip]
const TRANS_RESULT: &[Hazard] = &[
    mitigated(|_| "s_waitcnt_depctr depctr_va_vdst(0)".into(), &[
            Expiry { group: MEMORY_OR_EXPORT, count: 1 },
            Expiry { group: VA_VDST_0, count: 1 },
            Expiry { group: VALU, count: 6 },
            Expiry { group: TRANS, count: 2 },
        ],
        "a transcendental operation writes a VGPR, VALU reads it",
        side(TRANS, Registers::VectorsWritten), side(VALU, Registers::VectorsRead),
        Condition::OverlapOfHalves),
];

#[rustfmt::skip]
pub(super) const WMMA_RESULT: &[Hazard] = &[
    mitigated(|_| "v_nop".into(), &[Expiry { group: VALU, count: 1 }],
        "WMMA writes a VGPR, WMMA reads it as A or B",
        side(WMMA, Registers::VectorsWritten), side(WMMA, Registers::SrcAB), Condition::Overlap),
];

/// LLVM's `SIInsertWaitcnts` inserts the `s_nop` together with the message.
#[rustfmt::skip]
pub(super) const DEALLOCATION: &[Hazard] = &[
    hazard(1, "an instruction, s_sendmsg MSG_DEALLOC_VGPRS follows",
        side(NOT_NOP, Registers::None), side(DEALLOCATES, Registers::None), Condition::Always),
];
