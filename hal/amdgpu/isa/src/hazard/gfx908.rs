//! gfx908: what gfx9 has, and what its matrix operations and the moves to and from AccVGPRs need.
//! Only these write AccVGPRs; what follows on the same result as a whole is forwarded (LLVM,
//! `checkMAIHazards908` and `checkMAILdStHazards`).

use super::gfx9::{COMMON, STORE_DATA, after_matrix};
use super::group::*;
use super::matrix::{MATRIX, gfx90a_passes};
use super::{Hazard, Meeting, Part, hazard, side};

pub(super) const GFX908: &[&[Hazard]] =
    &[COMMON, STORE_DATA, VALU_TO_ACC, FROM_MATRIX, FROM_ACC_WRITE, TO_ACC_WRITE, TO_MEMORY];

#[rustfmt::skip]
const VALU_TO_ACC: &[Hazard] = &[
    hazard(4, "VALU writes EXEC, MFMA or v_accvgpr_write follows",
        side(VALU_WRITES_EXEC, Part::Nothing), side(MATRIX_OR_ACC_WRITE, Part::Nothing), Meeting::Always),
    hazard(2, "VALU writes a VGPR, MFMA or v_accvgpr_write reads it",
        side(VALU, Part::VectorsWritten), side(MATRIX_OR_ACC_WRITE, Part::VgprsRead), Meeting::Overlap),
];

#[rustfmt::skip]
const FROM_MATRIX: &[Hazard] = &[
    hazard(4, "MFMA writes an AccVGPR, MFMA reads it as a factor",
        side(MATRIX, Part::VectorsWritten), side(MATRIX, Part::Factors), Meeting::Overlap),
    hazard(2, "MFMA writes a part of what MFMA adds to",
        side(MATRIX, Part::VectorsWritten), side(MATRIX, Part::Addend), Meeting::Partial),
    after_matrix(|inst| gfx90a_passes(inst) + 2, "MFMA writes an AccVGPR, v_accvgpr_read reads it",
        side(MATRIX, Part::VectorsWritten), side(ACC_READ, Part::VectorsRead), Meeting::Overlap),
    after_matrix(|inst| gfx90a_passes(inst) - 1, "MFMA writes an AccVGPR, v_accvgpr_write overwrites it",
        side(MATRIX, Part::VectorsWritten), side(ACC_WRITE, Part::VectorsWritten), Meeting::Overlap),
];

#[rustfmt::skip]
const FROM_ACC_WRITE: &[Hazard] = &[
    hazard(3, "v_accvgpr_write writes an AccVGPR, MFMA reads it as a factor",
        side(ACC_WRITE, Part::VectorsWritten), side(MATRIX, Part::Factors), Meeting::Overlap),
    hazard(1, "v_accvgpr_write writes an AccVGPR, MFMA adds to it",
        side(ACC_WRITE, Part::VectorsWritten), side(MATRIX, Part::Addend), Meeting::Overlap),
    hazard(3, "v_accvgpr_write writes an AccVGPR, v_accvgpr_read reads it",
        side(ACC_WRITE, Part::VectorsWritten), side(ACC_READ, Part::VectorsRead), Meeting::Overlap),
    // LLVM alone has this one.
    hazard(3, "v_accvgpr_write writes an AccVGPR, v_accvgpr_write overwrites it",
        side(ACC_WRITE, Part::VectorsWritten), side(ACC_WRITE, Part::VectorsWritten), Meeting::Overlap),
];

#[rustfmt::skip]
const TO_ACC_WRITE: &[Hazard] = &[
    after_matrix(|inst| gfx90a_passes(inst).saturating_sub(3), "MFMA adds to an AccVGPR, v_accvgpr_write overwrites it",
        side(MATRIX, Part::Addend), side(ACC_WRITE, Part::VectorsWritten), Meeting::Overlap),
];

#[rustfmt::skip]
const TO_MEMORY: &[Hazard] = &[
    hazard(2, "v_accvgpr_read writes a VGPR, memory reads it",
        side(ACC_READ, Part::VectorsWritten), side(MEMORY, Part::VgprsRead), Meeting::Overlap),
    Hazard {
        across: Some(ACC_MOVE),
        ..hazard(2, "VALU writes a VGPR, v_accvgpr_read or v_accvgpr_write follows, memory reads the VGPR",
            side(NOT_ACC, Part::VectorsWritten), side(MEMORY, Part::VgprsRead), Meeting::Overlap)
    },
];
