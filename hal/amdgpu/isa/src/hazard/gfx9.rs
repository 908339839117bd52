//! Hazards of gfx9, gfx90a and gfx940. Hardware stops for none of them.

use super::group::*;
use super::matrix::*;
use super::{Hazard, Meeting, Part, Remedy, Side, hazard, side};
use crate::Inst;

/// gfx900 to gfx90c, but for gfx908.
pub(super) const GFX9: &[&[Hazard]] = &[COMMON, STORE_DATA];
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

/// A hazard after a matrix operation, which says how many wait states it needs.
pub(super) const fn after_matrix(
    states: fn(&Inst) -> u8,
    name: &'static str,
    trigger: Side,
    victim: Side,
    meeting: Meeting,
) -> Hazard {
    Hazard { remedy: Remedy::OfTrigger(states), ..hazard(0, name, trigger, victim, meeting) }
}

/// What all of gfx9 shares.
#[rustfmt::skip]
pub(super) const COMMON: &[Hazard] = &[
    hazard(5, "VALU writes an SGPR, VMEM reads it",
        side(VALU, Part::ScalarsWritten), side(VMEM, Part::ScalarsRead), Meeting::Overlap),
    hazard(4, "VALU writes an SGPR, v_readlane or v_writelane selects the lane by it",
        side(VALU, Part::ScalarsWritten), side(LANE_ACCESS, Part::LaneSelect), Meeting::Overlap),
    hazard(4, "VALU writes VCC, v_div_fmas reads it",
        side(VALU_WRITES_VCC, Part::Nothing), side(DIV_FMAS, Part::Nothing), Meeting::Always),
    hazard(5, "VALU writes VCC or EXEC, VALU reads VCCZ or EXECZ as data",
        side(VALU_WRITES_FLAGGED, Part::Nothing), side(VALU_READS_ZERO_FLAG, Part::Nothing), Meeting::Always),
    hazard(2, "a VGPR is written, DPP reads it",
        side(ANY, Part::VectorsWritten), side(DPP, Part::VgprsRead), Meeting::Overlap),
    hazard(5, "VALU writes EXEC, DPP follows",
        side(VALU_WRITES_EXEC, Part::Nothing), side(DPP, Part::Nothing), Meeting::Always),
    hazard(2, "s_setreg, s_getreg of the same register",
        side(SET_REGISTER, Part::Nothing), side(GET_REGISTER, Part::Nothing), Meeting::HardwareRegister),
    hazard(2, "s_setreg, s_setreg of the same register",
        side(SET_REGISTER, Part::Nothing), side(SET_REGISTER, Part::Nothing), Meeting::HardwareRegister),
    hazard(1, "SALU writes M0, an instruction uses it",
        side(SALU_WRITES_M0, Part::Nothing), side(USES_M0, Part::Nothing), Meeting::Always),
];

/// Data of wide stores up to gfx90a.
#[rustfmt::skip]
pub(super) const STORE_DATA: &[Hazard] = &[
    hazard(1, "a store of more than 64 bits, VALU overwrites its data",
        side(WIDE_STORE, Part::StoredData), side(VALU, Part::VectorsWritten), Meeting::Overlap),
];

/// Data of wide stores on gfx940.
#[rustfmt::skip]
pub(super) const GFX940_STORE_DATA: &[Hazard] = &[
    hazard(2, "a store of more than 64 bits, VALU overwrites its data",
        side(WIDE_STORE, Part::StoredData), side(VALU, Part::VectorsWritten), Meeting::Overlap),
];

#[rustfmt::skip]
pub(super) const GFX940_VALU: &[Hazard] = &[
    hazard(2, "VALU writes a scalar register, VALU reads it",
        side(VALU, Part::ScalarsWritten), side(VALU, Part::ScalarSources), Meeting::Overlap),
    hazard(4, "VALU writes EXEC, v_readlane, v_readfirstlane or v_writelane follows",
        side(VALU_WRITES_EXEC, Part::Nothing), side(SINGLE_LANE, Part::Nothing), Meeting::Always),
    hazard(1, "VALU writes a VGPR, v_readlane or v_readfirstlane reads it",
        side(VALU, Part::VectorsWritten), side(LANE_READ, Part::VectorsRead), Meeting::Overlap),
];

/// Results of transcendental operations on gfx940.
#[rustfmt::skip]
pub(super) const GFX940_TRANS: &[Hazard] = &[
    hazard(1, "a transcendental operation writes a VGPR, another VALU operation reads it",
        side(TRANS, Part::VectorsWritten), side(NOT_TRANS, Part::VectorsRead), Meeting::Overlap),
];

/// Results smaller than a register on gfx940.
#[rustfmt::skip]
pub(super) const GFX940_PART: &[Hazard] = &[
    hazard(1, "VALU writes a part of a VGPR or is packed, VALU reads the VGPR",
        side(WRITES_PART, Part::VectorsWritten), side(VALU, Part::VectorsRead), Meeting::Overlap),
    hazard(1, "VALU writes a part of a VGPR, VALU overwrites it",
        side(WRITES_PART_NOT_PACKED, Part::VectorsWritten), side(VALU, Part::VectorsWritten), Meeting::Overlap),
];

/// What MFMA reads of the VALU's.
#[rustfmt::skip]
pub(super) const VALU_TO_MATRIX: &[Hazard] = &[
    hazard(4, "VALU writes EXEC, MFMA follows",
        side(NOT_MATRIX_WRITES_EXEC, Part::Nothing), side(MATRIX, Part::Nothing), Meeting::Always),
    hazard(2, "VALU writes a VGPR, MFMA reads it",
        side(NOT_MATRIX_NOR_DOT, Part::VectorsWritten), side(MATRIX, Part::VectorsRead), Meeting::Overlap),
];

/// Results of dot products; the addend of the same operation is forwarded.
#[rustfmt::skip]
pub(super) const FROM_DOT: &[Hazard] = &[
    hazard(3, "DOT writes a VGPR, the same operation reads it as a factor",
        side(DOT, Part::VectorsWritten), side(DOT, Part::Factors), Meeting::OverlapOfSame),
    hazard(3, "DOT writes a VGPR, another operation reads it",
        side(DOT, Part::VectorsWritten), side(MEMORY_OR_VALU, Part::VectorsRead), Meeting::OverlapOfOthers),
    hazard(3, "DOT writes a VGPR, another operation overwrites it",
        side(DOT, Part::VectorsWritten), side(MEMORY_OR_VALU, Part::VectorsWritten), Meeting::OverlapOfOthers),
];

/// Results of matrix operations, other than where MFMA adds to them: the wait states before they are
/// read by arithmetic, before memory reads them, and before they are overwritten.
#[rustfmt::skip]
pub(super) const fn from_matrix(
    read: fn(&Inst) -> u8,
    in_memory: fn(&Inst) -> u8,
    overwritten: fn(&Inst) -> u8,
) -> [Hazard; 4] {
    [
        after_matrix(read, "MFMA writes a VGPR, it is read as a factor",
            side(MATRIX, Part::VectorsWritten), side(MATRIX, Part::Factors), Meeting::Overlap),
        after_matrix(read, "MFMA writes a VGPR, VALU reads it",
            side(MATRIX, Part::VectorsWritten), side(NOT_MATRIX, Part::VectorsRead), Meeting::Overlap),
        after_matrix(in_memory, "MFMA writes a VGPR, it is stored or addresses memory",
            side(MATRIX, Part::VectorsWritten), side(MEMORY_OR_EXPORT, Part::VectorsRead), Meeting::Overlap),
        after_matrix(overwritten, "MFMA writes a VGPR, it is overwritten",
            side(MATRIX, Part::VectorsWritten), side(MEMORY_OR_VALU, Part::VectorsWritten), Meeting::Overlap),
    ]
}

const GFX90A_FROM_MATRIX: &[Hazard] =
    &from_matrix(gfx90a_result, gfx90a_result_in_memory, gfx90a_result);
const GFX940_FROM_MATRIX: &[Hazard] =
    &from_matrix(gfx940_result, gfx940_result_in_memory, gfx940_result);

/// What MFMA adds to on gfx90a. Results of the same shape in the same registers are forwarded;
/// only v_mfma_f64_4x4x4 waits for its own.
#[rustfmt::skip]
const GFX90A_TO_ADDEND: &[Hazard] = &[
    after_matrix(gfx90a_passes, "MFMA writes a part of what MFMA adds to",
        side(SGEMM, Part::VectorsWritten), side(SGEMM, Part::Addend), Meeting::Partial),
    after_matrix(|inst| gfx90a_passes(inst) + 1, "MFMA writes a part of what double-precision MFMA adds to",
        side(SGEMM, Part::VectorsWritten), side(DGEMM, Part::Addend), Meeting::Partial),
    hazard(4, "v_mfma_f64_4x4x4 writes what it adds to",
        side(DGEMM_4X4, Part::VectorsWritten), side(DGEMM_4X4, Part::Addend), Meeting::Same),
    hazard(4, "v_mfma_f64_4x4x4 writes a part of what double-precision MFMA adds to",
        side(DGEMM_4X4, Part::VectorsWritten), side(DGEMM, Part::Addend), Meeting::Partial),
    hazard(9, "v_mfma_f64_16x16x4 writes a part of what double-precision MFMA adds to",
        side(DGEMM_16X16, Part::VectorsWritten), side(DGEMM, Part::Addend), Meeting::Partial),

    after_matrix(|inst| gfx90a_passes(inst) - 1, "MFMA adds to a VGPR, it is overwritten",
        side(SGEMM, Part::Addend), side(MEMORY_OR_VALU, Part::VectorsWritten), Meeting::Overlap),
];

/// What MFMA adds to on gfx940 and gfx950.
#[rustfmt::skip]
pub(super) const TO_ADDEND: &[Hazard] = &[
    hazard(2, "MFMA of 2 passes writes what MFMA adds to",
        side(OF_2_PASSES, Part::VectorsWritten), side(MATRIX, Part::Addend), Meeting::Same),
    hazard(4, "v_mfma_f64_4x4x4 writes what it adds to",
        side(DGEMM_4X4, Part::VectorsWritten), side(DGEMM_4X4, Part::Addend), Meeting::Same),
    hazard(4, "v_mfma_f64_4x4x4 writes a part of what MFMA other than of narrow elements adds to",
        side(DGEMM_4X4, Part::VectorsWritten), side(NOT_XDL, Part::Addend), Meeting::Partial),
];

/// The same, with the passes of gfx940.
#[rustfmt::skip]
const GFX940_TO_ADDEND: &[Hazard] = &[
    after_matrix(|inst| gfx940_passes(inst) + 1, "MFMA of narrow elements writes a part of what MFMA adds to",
        side(XDL, Part::VectorsWritten), side(MATRIX, Part::Addend), Meeting::Partial),
    after_matrix(gfx940_passes, "MFMA of single precision writes a part of what MFMA other than of narrow elements adds to",
        side(SINGLE, Part::VectorsWritten), side(NOT_XDL, Part::Addend), Meeting::Partial),
    hazard(9, "v_mfma_f64_16x16x4 writes a part of what MFMA other than of narrow elements adds to",
        side(DGEMM_16X16, Part::VectorsWritten), side(NOT_XDL, Part::Addend), Meeting::Partial),

    after_matrix(|inst| gfx940_passes(inst) - 1, "MFMA of narrow elements adds to a VGPR, it is overwritten",
        side(XDL, Part::Addend), side(MEMORY_OR_VALU, Part::VectorsWritten), Meeting::Overlap),
];

/// What double-precision matrix operations disturb beside their own registers.
#[rustfmt::skip]
pub(super) const AROUND_DGEMM: &[Hazard] = &[
    hazard(2, "double-precision MFMA, v_fma_f64 follows",
        side(DGEMM, Part::Nothing), side(FMA_F64, Part::Nothing), Meeting::Always),
];

/// The same, on gfx90a alone.
#[rustfmt::skip]
const ACROSS_DGEMM: &[Hazard] = &[
    Hazard {
        across: Some(DGEMM),
        ..hazard(2, "VALU writes a VGPR, double-precision MFMA, memory reads the VGPR",
            side(VALU, Part::VectorsWritten), side(MEMORY, Part::VectorsRead), Meeting::Overlap)
    },
];
