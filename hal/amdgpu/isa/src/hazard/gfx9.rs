//! Hazards of gfx9, gfx90a and gfx940, none of which hardware resolves.

use super::group::*;
use super::matrix::*;
use super::{Condition, Hazard, MitigationRule, Registers, Side, hazard, side};
use crate::Inst;

/// gfx900 to gfx90c except gfx908.
pub(super) const GFX9: &[&[Hazard]] = &[COMMON, STORE_DATA];
/// gfx90a.
pub(super) const GFX90A: &[&[Hazard]] = &[
    COMMON,
    STORE_DATA,
    VALU_TO_MATRIX,
    FROM_DOT,
    GFX90A_FROM_MATRIX,
    GFX90A_TO_ADDEND,
    AROUND_DGEMM,
    ACROSS_DGEMM,
];
/// gfx940 to gfx942.
pub(super) const GFX940: &[&[Hazard]] = &[
    COMMON,
    GFX940_STORE_DATA,
    GFX940_VALU,
    GFX940_TRANS,
    GFX940_PART,
    VALU_TO_MATRIX,
    FROM_DOT,
    GFX940_FROM_MATRIX,
    TO_ADDEND,
    GFX940_TO_ADDEND,
    AROUND_DGEMM,
];

/// A hazard whose trigger, a matrix operation, determines the number of wait states.
pub(super) const fn after_matrix(
    states: fn(&Inst) -> u8,
    name: &'static str,
    trigger: Side,
    victim: Side,
    condition: Condition,
) -> Hazard {
    let mitigation = MitigationRule::TriggerWaitStates(states);
    Hazard { mitigation, ..hazard(0, name, trigger, victim, condition) }
}

/// Hazards of all gfx9 targets.
#[rustfmt::skip]
pub(super) const COMMON: &[Hazard] = &[
    hazard(5, "VALU writes an SGPR, VMEM reads it",
        side(VALU, Registers::ScalarsWritten), side(VMEM, Registers::ScalarsRead), Condition::Overlap),
    hazard(4, "VALU writes an SGPR, v_readlane or v_writelane reads it as lane select",
        side(VALU, Registers::ScalarsWritten), side(LANE_ACCESS, Registers::LaneSelect), Condition::Overlap),
    hazard(4, "VALU writes VCC, v_div_fmas reads it",
        side(VALU_WRITES_VCC, Registers::None), side(DIV_FMAS, Registers::None), Condition::Always),
    hazard(5, "VALU writes VCC or EXEC, VALU reads VCCZ or EXECZ as data",
        side(VALU_WRITES_FLAGGED, Registers::None), side(VALU_READS_ZERO_FLAG, Registers::None), Condition::Always),
    hazard(2, "a VGPR is written, DPP reads it",
        side(ANY, Registers::VectorsWritten), side(DPP, Registers::VgprsRead), Condition::Overlap),
    hazard(5, "VALU writes EXEC, DPP follows",
        side(VALU_WRITES_EXEC, Registers::None), side(DPP, Registers::None), Condition::Always),
    hazard(2, "s_setreg, s_getreg of the same register",
        side(SET_REGISTER, Registers::None), side(GET_REGISTER, Registers::None), Condition::HardwareRegister),
    hazard(2, "s_setreg, s_setreg of the same register",
        side(SET_REGISTER, Registers::None), side(SET_REGISTER, Registers::None), Condition::HardwareRegister),
    hazard(1, "SALU writes M0, an instruction uses it",
        side(SALU_WRITES_M0, Registers::None), side(USES_M0, Registers::None), Condition::Always),
];

/// Overwritten data of wide stores, up to gfx90a.
#[rustfmt::skip]
pub(super) const STORE_DATA: &[Hazard] = &[
    hazard(1, "a store of more than 64 bits, VALU overwrites its data",
        side(WIDE_STORE, Registers::StoredData), side(VALU, Registers::VectorsWritten), Condition::Overlap),
];

/// Overwritten data of wide stores on gfx940.
#[rustfmt::skip]
pub(super) const GFX940_STORE_DATA: &[Hazard] = &[
    hazard(2, "a store of more than 64 bits, VALU overwrites its data",
        side(WIDE_STORE, Registers::StoredData), side(VALU, Registers::VectorsWritten), Condition::Overlap),
];

#[rustfmt::skip]
pub(super) const GFX940_VALU: &[Hazard] = &[
    hazard(2, "VALU writes a scalar register, VALU reads it",
        side(VALU, Registers::ScalarsWritten), side(VALU, Registers::ScalarSources), Condition::Overlap),
    hazard(4, "VALU writes EXEC, v_readlane, v_readfirstlane or v_writelane follows",
        side(VALU_WRITES_EXEC, Registers::None), side(SINGLE_LANE, Registers::None), Condition::Always),
    hazard(1, "VALU writes a VGPR, v_readlane or v_readfirstlane reads it",
        side(VALU, Registers::VectorsWritten), side(LANE_READ, Registers::VectorsRead), Condition::Overlap),
];

/// Results of transcendental operations on gfx940.
#[rustfmt::skip]
pub(super) const GFX940_TRANS: &[Hazard] = &[
    hazard(1, "a transcendental operation writes a VGPR, another VALU operation reads it",
        side(TRANS, Registers::VectorsWritten), side(NOT_TRANS, Registers::VectorsRead), Condition::Overlap),
];

/// Partial register writes on gfx940.
#[rustfmt::skip]
pub(super) const GFX940_PART: &[Hazard] = &[
    hazard(1, "VALU writes a part of a VGPR or is packed, VALU reads the VGPR",
        side(WRITES_PART, Registers::VectorsWritten), side(VALU, Registers::VectorsRead), Condition::Overlap),
    hazard(1, "VALU writes a part of a VGPR, VALU overwrites it",
        side(WRITES_PART_NOT_PACKED, Registers::VectorsWritten), side(VALU, Registers::VectorsWritten), Condition::Overlap),
];

/// VALU results read by MFMA.
#[rustfmt::skip]
pub(super) const VALU_TO_MATRIX: &[Hazard] = &[
    hazard(4, "VALU writes EXEC, MFMA follows",
        side(NOT_MATRIX_WRITES_EXEC, Registers::None), side(MATRIX, Registers::None), Condition::Always),
    hazard(2, "VALU writes a VGPR, MFMA reads it",
        side(NOT_MATRIX_NOR_DOT, Registers::VectorsWritten), side(MATRIX, Registers::VectorsRead), Condition::Overlap),
];

/// Results of dot products. SrcC of the same operation is forwarded.
#[rustfmt::skip]
pub(super) const FROM_DOT: &[Hazard] = &[
    hazard(3, "DOT writes a VGPR, the same operation reads it as SrcA or SrcB",
        side(DOT, Registers::VectorsWritten), side(DOT, Registers::SrcAB), Condition::OverlapSameOpcode),
    hazard(3, "DOT writes a VGPR, another operation reads it",
        side(DOT, Registers::VectorsWritten), side(MEMORY_OR_VALU, Registers::VectorsRead), Condition::OverlapOtherOpcode),
    hazard(3, "DOT writes a VGPR, another operation overwrites it",
        side(DOT, Registers::VectorsWritten), side(MEMORY_OR_VALU, Registers::VectorsWritten), Condition::OverlapOtherOpcode),
];

/// Results of matrix operations, except as SrcC of MFMA. The parameters give the wait states before arithmetic
/// reads the result, before a memory instruction reads it, and before it is overwritten.
#[rustfmt::skip]
pub(super) const fn from_matrix(
    read: fn(&Inst) -> u8,
    in_memory: fn(&Inst) -> u8,
    overwritten: fn(&Inst) -> u8,
) -> [Hazard; 4] {
    [
        after_matrix(read, "MFMA writes a VGPR, MFMA reads it as SrcA or SrcB",
            side(MATRIX, Registers::VectorsWritten), side(MATRIX, Registers::SrcAB), Condition::Overlap),
        after_matrix(read, "MFMA writes a VGPR, VALU reads it",
            side(MATRIX, Registers::VectorsWritten), side(NOT_MATRIX, Registers::VectorsRead), Condition::Overlap),
        after_matrix(in_memory, "MFMA writes a VGPR, memory reads it",
            side(MATRIX, Registers::VectorsWritten), side(MEMORY_OR_EXPORT, Registers::VectorsRead), Condition::Overlap),
        after_matrix(overwritten, "MFMA writes a VGPR, another instruction overwrites it",
            side(MATRIX, Registers::VectorsWritten), side(MEMORY_OR_VALU, Registers::VectorsWritten), Condition::Overlap),
    ]
}

const GFX90A_FROM_MATRIX: &[Hazard] =
    &from_matrix(gfx90a_result, gfx90a_result_in_memory, gfx90a_result);
const GFX940_FROM_MATRIX: &[Hazard] =
    &from_matrix(gfx940_result, gfx940_result_in_memory, gfx940_result);

/// SrcC of MFMA on gfx90a. Results of the same shape in the same registers are forwarded, except those
/// of v_mfma_f64_4x4x4.
#[rustfmt::skip]
const GFX90A_TO_ADDEND: &[Hazard] = &[
    after_matrix(gfx90a_passes, "MFMA writes part of the SrcC of MFMA",
        side(SGEMM, Registers::VectorsWritten), side(SGEMM, Registers::SrcC), Condition::Partial),
    after_matrix(|inst| gfx90a_passes(inst) + 1, "MFMA writes part of the SrcC of double-precision MFMA",
        side(SGEMM, Registers::VectorsWritten), side(DGEMM, Registers::SrcC), Condition::Partial),
    hazard(4, "v_mfma_f64_4x4x4 writes the SrcC of v_mfma_f64_4x4x4",
        side(DGEMM_4X4, Registers::VectorsWritten), side(DGEMM_4X4, Registers::SrcC), Condition::Equal),
    hazard(4, "v_mfma_f64_4x4x4 writes part of the SrcC of double-precision MFMA",
        side(DGEMM_4X4, Registers::VectorsWritten), side(DGEMM, Registers::SrcC), Condition::Partial),
    hazard(9, "v_mfma_f64_16x16x4 writes part of the SrcC of double-precision MFMA",
        side(DGEMM_16X16, Registers::VectorsWritten), side(DGEMM, Registers::SrcC), Condition::Partial),

    after_matrix(|inst| gfx90a_passes(inst) - 1, "MFMA reads a VGPR as SrcC, another instruction overwrites it",
        side(SGEMM, Registers::SrcC), side(MEMORY_OR_VALU, Registers::VectorsWritten), Condition::Overlap),
];

/// SrcC of MFMA on gfx940 and gfx950.
#[rustfmt::skip]
pub(super) const TO_ADDEND: &[Hazard] = &[
    hazard(2, "MFMA of 2 passes writes the SrcC of MFMA",
        side(OF_2_PASSES, Registers::VectorsWritten), side(MATRIX, Registers::SrcC), Condition::Equal),
    hazard(4, "v_mfma_f64_4x4x4 writes the SrcC of v_mfma_f64_4x4x4",
        side(DGEMM_4X4, Registers::VectorsWritten), side(DGEMM_4X4, Registers::SrcC), Condition::Equal),
    hazard(4, "v_mfma_f64_4x4x4 writes part of the SrcC of non-XDL MFMA",
        side(DGEMM_4X4, Registers::VectorsWritten), side(NOT_XDL, Registers::SrcC), Condition::Partial),
];

/// SrcC of MFMA with the passes of gfx940.
#[rustfmt::skip]
const GFX940_TO_ADDEND: &[Hazard] = &[
    after_matrix(|inst| gfx940_passes(inst) + 1, "XDL MFMA writes part of the SrcC of MFMA",
        side(XDL, Registers::VectorsWritten), side(MATRIX, Registers::SrcC), Condition::Partial),
    after_matrix(gfx940_passes, "single-precision MFMA writes part of the SrcC of non-XDL MFMA",
        side(SINGLE, Registers::VectorsWritten), side(NOT_XDL, Registers::SrcC), Condition::Partial),
    hazard(9, "v_mfma_f64_16x16x4 writes part of the SrcC of non-XDL MFMA",
        side(DGEMM_16X16, Registers::VectorsWritten), side(NOT_XDL, Registers::SrcC), Condition::Partial),

    after_matrix(|inst| gfx940_passes(inst) - 1, "XDL MFMA reads a VGPR as SrcC, another instruction overwrites it",
        side(XDL, Registers::SrcC), side(MEMORY_OR_VALU, Registers::VectorsWritten), Condition::Overlap),
];

/// Hazards of double-precision matrix operations that do not involve their registers.
#[rustfmt::skip]
pub(super) const AROUND_DGEMM: &[Hazard] = &[
    hazard(2, "double-precision MFMA, v_fma_f64 follows",
        side(DGEMM, Registers::None), side(FMA_F64, Registers::None), Condition::Always),
];

/// Double-precision matrix operations between a write and a memory access, on gfx90a only.
#[rustfmt::skip]
const ACROSS_DGEMM: &[Hazard] = &[
    Hazard {
        intervening: Some(DGEMM),
        ..hazard(2, "VALU writes a VGPR, double-precision MFMA, memory reads the VGPR",
            side(VALU, Registers::VectorsWritten), side(MEMORY, Registers::VectorsRead), Condition::Overlap)
    },
];
