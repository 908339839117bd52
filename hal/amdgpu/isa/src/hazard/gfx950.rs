//! Hazards of gfx950: those of gfx940, with matrix results that arrive one pass later.

use super::gfx9::*;
use super::group::*;
use super::matrix::*;
use super::{Condition, Hazard, Registers, hazard, side};

/// gfx950.
pub(super) const GFX950: &[&[Hazard]] = &[
    COMMON,
    GFX940_STORE_DATA,
    GFX940_VALU,
    GFX940_TRANS,
    GFX940_PART,
    PERMLANE_SWAP,
    VALU_TO_MATRIX,
    FROM_DOT,
    FROM_MATRIX,
    TO_ADDEND,
    GFX950_TO_ADDEND,
    AROUND_DGEMM,
];

/// `v_permlane16_swap` and `v_permlane32_swap`, which exchange lanes between two registers.
#[rustfmt::skip]
const PERMLANE_SWAP: &[Hazard] = &[
    hazard(2, "VALU writes a VGPR, v_permlane reads it",
        side(VALU, Registers::VectorsWritten), side(PERMLANE, Registers::VectorsRead), Condition::Overlap),
    hazard(4, "v_cmpx writes EXEC, v_permlane follows on gfx950",
        side(COMPARE_WRITES_EXEC, Registers::None), side(PERMLANE, Registers::None), Condition::Always),
];

const FROM_MATRIX: &[Hazard] =
    &from_matrix(gfx950_result, gfx950_result_in_memory, gfx950_result_overwritten);

/// SrcC of MFMA with the passes of gfx950.
#[rustfmt::skip]
const GFX950_TO_ADDEND: &[Hazard] = &[
    after_matrix(|inst| gfx950_passes(inst) + 2, "XDL MFMA writes part of the SrcC of XDL MFMA",
        side(XDL, Registers::VectorsWritten), side(XDL, Registers::SrcC), Condition::Partial),
    after_matrix(gfx950_to_non_xdl_src_c, "XDL MFMA writes part of the SrcC of non-XDL MFMA",
        side(XDL, Registers::VectorsWritten), side(NOT_XDL, Registers::SrcC), Condition::Partial),
    after_matrix(gfx950_passes, "single-precision MFMA writes part of the SrcC of non-XDL MFMA",
        side(SINGLE, Registers::VectorsWritten), side(NOT_XDL, Registers::SrcC), Condition::Partial),
    hazard(17, "v_mfma_f64_16x16x4 writes part of the SrcC of non-XDL MFMA",
        side(DGEMM_16X16, Registers::VectorsWritten), side(NOT_XDL, Registers::SrcC), Condition::Partial),

    after_matrix(|inst| gfx950_passes(inst) - 1, "XDL MFMA reads a VGPR as SrcC, another instruction overwrites it",
        side(XDL, Registers::SrcC), side(MEMORY_OR_VALU, Registers::VectorsWritten), Condition::Overlap),
];
