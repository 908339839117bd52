//! Hazards of gfx950: those of gfx940, with matrix operations that deliver a pass later.

use super::gfx9::*;
use super::group::*;
use super::matrix::*;
use super::{Hazard, Meeting, Part, hazard, side};

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

/// Lanes that change places between two registers.
#[rustfmt::skip]
const PERMLANE_SWAP: &[Hazard] = &[
    hazard(2, "VALU writes a VGPR, v_permlane reads it",
        side(VALU, Part::VectorsWritten), side(PERMLANE, Part::VectorsRead), Meeting::Overlap),
    hazard(4, "v_cmpx writes EXEC, v_permlane follows on gfx950",
        side(COMPARE_WRITES_EXEC, Part::Nothing), side(PERMLANE, Part::Nothing), Meeting::Always),
];

const FROM_MATRIX: &[Hazard] =
    &from_matrix(gfx950_result, gfx950_result_in_memory, gfx950_result_overwritten);

/// What MFMA adds to, with the passes of gfx950.
#[rustfmt::skip]
const GFX950_TO_ADDEND: &[Hazard] = &[
    after_matrix(|inst| gfx950_passes(inst) + 2, "MFMA of narrow elements writes a part of what MFMA of narrow elements adds to",
        side(XDL, Part::VectorsWritten), side(XDL, Part::Addend), Meeting::Partial),
    after_matrix(gfx950_to_other_addend, "MFMA of narrow elements writes a part of what other MFMA adds to",
        side(XDL, Part::VectorsWritten), side(NOT_XDL, Part::Addend), Meeting::Partial),
    after_matrix(gfx950_passes, "MFMA of single precision writes a part of what MFMA other than of narrow elements adds to",
        side(SINGLE, Part::VectorsWritten), side(NOT_XDL, Part::Addend), Meeting::Partial),
    hazard(17, "v_mfma_f64_16x16x4 writes a part of what MFMA other than of narrow elements adds to",
        side(DGEMM_16X16, Part::VectorsWritten), side(NOT_XDL, Part::Addend), Meeting::Partial),

    after_matrix(|inst| gfx950_passes(inst) - 1, "MFMA of narrow elements adds to a VGPR, it is overwritten",
        side(XDL, Part::Addend), side(MEMORY_OR_VALU, Part::VectorsWritten), Meeting::Overlap),
];
