//! Hazards of gfx908: those of gfx9, and those of matrix operations and of moves to and from AccVGPRs. Only
//! these write AccVGPRs; results that are used as a whole are forwarded (LLVM, `checkMAIHazards908` and
//! `checkMAILdStHazards`).

use super::gfx9::{COMMON, STORE_DATA, after_matrix};
use super::group::*;
use super::matrix::{MATRIX, gfx90a_passes};
use super::{Condition, Hazard, Registers, hazard, side};

/// gfx908.
pub(super) const GFX908: &[&[Hazard]] =
    &[COMMON, STORE_DATA, VALU_TO_ACC, FROM_MATRIX, FROM_ACC_WRITE, TO_ACC_WRITE, TO_MEMORY];

#[rustfmt::skip]
const VALU_TO_ACC: &[Hazard] = &[
    hazard(4, "VALU writes EXEC, MFMA or v_accvgpr_write follows",
        side(VALU_WRITES_EXEC, Registers::None), side(MATRIX_OR_ACC_WRITE, Registers::None), Condition::Always),
    hazard(2, "VALU writes a VGPR, MFMA or v_accvgpr_write reads it",
        side(VALU, Registers::VectorsWritten), side(MATRIX_OR_ACC_WRITE, Registers::VgprsRead), Condition::Overlap),
];

#[rustfmt::skip]
const FROM_MATRIX: &[Hazard] = &[
    hazard(4, "MFMA writes an AccVGPR, MFMA reads it as SrcA or SrcB",
        side(MATRIX, Registers::VectorsWritten), side(MATRIX, Registers::SrcAB), Condition::Overlap),
    hazard(2, "MFMA writes part of the SrcC of MFMA",
        side(MATRIX, Registers::VectorsWritten), side(MATRIX, Registers::SrcC), Condition::Partial),
    after_matrix(|inst| gfx90a_passes(inst) + 2, "MFMA writes an AccVGPR, v_accvgpr_read reads it",
        side(MATRIX, Registers::VectorsWritten), side(ACC_READ, Registers::VectorsRead), Condition::Overlap),
    after_matrix(|inst| gfx90a_passes(inst) - 1, "MFMA writes an AccVGPR, v_accvgpr_write overwrites it",
        side(MATRIX, Registers::VectorsWritten), side(ACC_WRITE, Registers::VectorsWritten), Condition::Overlap),
];

#[rustfmt::skip]
const FROM_ACC_WRITE: &[Hazard] = &[
    hazard(3, "v_accvgpr_write writes an AccVGPR, MFMA reads it as SrcA or SrcB",
        side(ACC_WRITE, Registers::VectorsWritten), side(MATRIX, Registers::SrcAB), Condition::Overlap),
    hazard(1, "v_accvgpr_write writes an AccVGPR, MFMA reads it as SrcC",
        side(ACC_WRITE, Registers::VectorsWritten), side(MATRIX, Registers::SrcC), Condition::Overlap),
    hazard(3, "v_accvgpr_write writes an AccVGPR, v_accvgpr_read reads it",
        side(ACC_WRITE, Registers::VectorsWritten), side(ACC_READ, Registers::VectorsRead), Condition::Overlap),
    // Documented by LLVM only.
    hazard(3, "v_accvgpr_write writes an AccVGPR, v_accvgpr_write overwrites it",
        side(ACC_WRITE, Registers::VectorsWritten), side(ACC_WRITE, Registers::VectorsWritten), Condition::Overlap),
];

#[rustfmt::skip]
const TO_ACC_WRITE: &[Hazard] = &[
    after_matrix(|inst| gfx90a_passes(inst).saturating_sub(3), "MFMA reads an AccVGPR as SrcC, v_accvgpr_write overwrites it",
        side(MATRIX, Registers::SrcC), side(ACC_WRITE, Registers::VectorsWritten), Condition::Overlap),
];

#[rustfmt::skip]
const TO_MEMORY: &[Hazard] = &[
    hazard(2, "v_accvgpr_read writes a VGPR, memory reads it",
        side(ACC_READ, Registers::VectorsWritten), side(MEMORY, Registers::VgprsRead), Condition::Overlap),
    Hazard {
        intervening: Some(ACC_MOVE),
        ..hazard(2, "VALU writes a VGPR, v_accvgpr_read or v_accvgpr_write follows, memory reads the VGPR",
            side(NOT_ACC, Registers::VectorsWritten), side(MEMORY, Registers::VgprsRead), Condition::Overlap)
    },
];
