//! The tables. A generation's hazards are those of its family and its own.

use super::group::*;
use super::{Group, Hazard, Meeting, Part, Side};
use crate::{Generation, Target};

/// The manual hazards of a target, in families: a trigger of a family replaces those before it
/// on the same registers. Empty for generations that have no table yet.
pub fn hazards(target: &Target) -> &'static [&'static [Hazard]] {
    match target.generation() {
        Generation::Gfx9 => &[GFX9],
        Generation::Gfx90a => {
            &[GFX9, VALU_TO_MATRIX, FROM_DOT, FROM_MATRIX, TO_ADDEND, AROUND_DGEMM]
        }
        _ => &[],
    }
}

const fn side(group: Group, part: Part) -> Side {
    Side { group, part }
}

const fn hazard(
    wait_states: u8,
    name: &'static str,
    trigger: Side,
    victim: Side,
    meeting: Meeting,
) -> Hazard {
    Hazard { name, trigger, victim, meeting, across: None, wait_states }
}

/// What all of gfx9 shares.
#[rustfmt::skip]
const GFX9: &[Hazard] = &[
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
    hazard(1, "a store of more than 64 bits, VALU overwrites its data",
        side(WIDE_STORE, Part::StoredData), side(VALU, Part::VectorsWritten), Meeting::Overlap),
    hazard(2, "s_setreg, s_getreg of the same register",
        side(SET_REGISTER, Part::Nothing), side(GET_REGISTER, Part::Nothing), Meeting::HardwareRegister),
    hazard(2, "s_setreg, s_setreg of the same register",
        side(SET_REGISTER, Part::Nothing), side(SET_REGISTER, Part::Nothing), Meeting::HardwareRegister),
    hazard(1, "SALU writes M0, an instruction uses it",
        side(SALU_WRITES_M0, Part::Nothing), side(USES_M0, Part::Nothing), Meeting::Always),
];

/// What MFMA reads of the VALU's.
#[rustfmt::skip]
const VALU_TO_MATRIX: &[Hazard] = &[
    hazard(4, "VALU writes EXEC, MFMA follows",
        side(NOT_MATRIX_WRITES_EXEC, Part::Nothing), side(MATRIX, Part::Nothing), Meeting::Always),
    hazard(2, "VALU writes a VGPR, MFMA reads it",
        side(NOT_MATRIX_NOR_DOT, Part::VectorsWritten), side(MATRIX, Part::VectorsRead), Meeting::Overlap),
];

/// Results of dot products; the addend of the same operation is forwarded.
#[rustfmt::skip]
const FROM_DOT: &[Hazard] = &[
    hazard(3, "DOT writes a VGPR, the same operation reads it as a factor",
        side(DOT, Part::VectorsWritten), side(DOT, Part::Factors), Meeting::OverlapOfSame),
    hazard(3, "DOT writes a VGPR, another operation reads it",
        side(DOT, Part::VectorsWritten), side(MEMORY_OR_VALU, Part::VectorsRead), Meeting::OverlapOfOthers),
    hazard(3, "DOT writes a VGPR, another operation overwrites it",
        side(DOT, Part::VectorsWritten), side(MEMORY_OR_VALU, Part::VectorsWritten), Meeting::OverlapOfOthers),
];

/// Results of matrix operations, by their passes, other than where MFMA adds to them.
#[rustfmt::skip]
const FROM_MATRIX: &[Hazard] = &[
    hazard(5, "MFMA of 2 passes writes a VGPR, it is read as a factor",
        side(SGEMM_2_PASSES, Part::VectorsWritten), side(MATRIX, Part::Factors), Meeting::Overlap),
    hazard(11, "MFMA of 8 passes writes a VGPR, it is read as a factor",
        side(SGEMM_8_PASSES, Part::VectorsWritten), side(MATRIX, Part::Factors), Meeting::Overlap),
    hazard(19, "MFMA of 16 passes writes a VGPR, it is read as a factor",
        side(SGEMM_16_PASSES, Part::VectorsWritten), side(MATRIX, Part::Factors), Meeting::Overlap),
    hazard(6, "v_mfma_f64_4x4x4 writes a VGPR, it is read as a factor",
        side(DGEMM_4X4, Part::VectorsWritten), side(MATRIX, Part::Factors), Meeting::Overlap),
    hazard(11, "v_mfma_f64_16x16x4 writes a VGPR, it is read as a factor",
        side(DGEMM_16X16, Part::VectorsWritten), side(MATRIX, Part::Factors), Meeting::Overlap),

    hazard(5, "MFMA of 2 passes writes a VGPR, it is read",
        side(SGEMM_2_PASSES, Part::VectorsWritten), side(MEMORY_OR_VALU, Part::VectorsRead), Meeting::Overlap),
    hazard(11, "MFMA of 8 passes writes a VGPR, it is read",
        side(SGEMM_8_PASSES, Part::VectorsWritten), side(MEMORY_OR_VALU, Part::VectorsRead), Meeting::Overlap),
    hazard(19, "MFMA of 16 passes writes a VGPR, it is read",
        side(SGEMM_16_PASSES, Part::VectorsWritten), side(MEMORY_OR_VALU, Part::VectorsRead), Meeting::Overlap),
    hazard(6, "v_mfma_f64_4x4x4 writes a VGPR, VALU reads it",
        side(DGEMM_4X4, Part::VectorsWritten), side(NOT_MATRIX, Part::VectorsRead), Meeting::Overlap),
    hazard(9, "v_mfma_f64_4x4x4 writes a VGPR, it is stored or addresses memory",
        side(DGEMM_4X4, Part::VectorsWritten), side(MEMORY_OR_EXPORT, Part::VectorsRead), Meeting::Overlap),
    hazard(11, "v_mfma_f64_16x16x4 writes a VGPR, VALU reads it",
        side(DGEMM_16X16, Part::VectorsWritten), side(NOT_MATRIX, Part::VectorsRead), Meeting::Overlap),
    hazard(18, "v_mfma_f64_16x16x4 writes a VGPR, it is stored or addresses memory",
        side(DGEMM_16X16, Part::VectorsWritten), side(MEMORY_OR_EXPORT, Part::VectorsRead), Meeting::Overlap),

    hazard(5, "MFMA of 2 passes writes a VGPR, it is overwritten",
        side(SGEMM_2_PASSES, Part::VectorsWritten), side(MEMORY_OR_VALU, Part::VectorsWritten), Meeting::Overlap),
    hazard(11, "MFMA of 8 passes writes a VGPR, it is overwritten",
        side(SGEMM_8_PASSES, Part::VectorsWritten), side(MEMORY_OR_VALU, Part::VectorsWritten), Meeting::Overlap),
    hazard(19, "MFMA of 16 passes writes a VGPR, it is overwritten",
        side(SGEMM_16_PASSES, Part::VectorsWritten), side(MEMORY_OR_VALU, Part::VectorsWritten), Meeting::Overlap),
    hazard(6, "v_mfma_f64_4x4x4 writes a VGPR, it is overwritten",
        side(DGEMM_4X4, Part::VectorsWritten), side(MEMORY_OR_VALU, Part::VectorsWritten), Meeting::Overlap),
    hazard(11, "v_mfma_f64_16x16x4 writes a VGPR, it is overwritten",
        side(DGEMM_16X16, Part::VectorsWritten), side(MEMORY_OR_VALU, Part::VectorsWritten), Meeting::Overlap),
];

/// What MFMA adds to. Results of the same shape in the same registers are forwarded; only
/// v_mfma_f64_4x4x4 waits for its own.
#[rustfmt::skip]
const TO_ADDEND: &[Hazard] = &[
    hazard(2, "MFMA of 2 passes writes a part of what MFMA adds to",
        side(SGEMM_2_PASSES, Part::VectorsWritten), side(SGEMM, Part::Addend), Meeting::Partial),
    hazard(8, "MFMA of 8 passes writes a part of what MFMA adds to",
        side(SGEMM_8_PASSES, Part::VectorsWritten), side(SGEMM, Part::Addend), Meeting::Partial),
    hazard(16, "MFMA of 16 passes writes a part of what MFMA adds to",
        side(SGEMM_16_PASSES, Part::VectorsWritten), side(SGEMM, Part::Addend), Meeting::Partial),
    hazard(3, "MFMA of 2 passes writes a part of what double-precision MFMA adds to",
        side(SGEMM_2_PASSES, Part::VectorsWritten), side(DGEMM, Part::Addend), Meeting::Partial),
    hazard(9, "MFMA of 8 passes writes a part of what double-precision MFMA adds to",
        side(SGEMM_8_PASSES, Part::VectorsWritten), side(DGEMM, Part::Addend), Meeting::Partial),
    hazard(17, "MFMA of 16 passes writes a part of what double-precision MFMA adds to",
        side(SGEMM_16_PASSES, Part::VectorsWritten), side(DGEMM, Part::Addend), Meeting::Partial),
    hazard(4, "v_mfma_f64_4x4x4 writes what it adds to",
        side(DGEMM_4X4, Part::VectorsWritten), side(DGEMM_4X4, Part::Addend), Meeting::Same),
    hazard(4, "v_mfma_f64_4x4x4 writes a part of what double-precision MFMA adds to",
        side(DGEMM_4X4, Part::VectorsWritten), side(DGEMM, Part::Addend), Meeting::Partial),
    hazard(9, "v_mfma_f64_16x16x4 writes a part of what double-precision MFMA adds to",
        side(DGEMM_16X16, Part::VectorsWritten), side(DGEMM, Part::Addend), Meeting::Partial),

    hazard(1, "MFMA of 2 passes adds to a VGPR, it is overwritten",
        side(SGEMM_2_PASSES, Part::Addend), side(MEMORY_OR_VALU, Part::VectorsWritten), Meeting::Overlap),
    hazard(7, "MFMA of 8 passes adds to a VGPR, it is overwritten",
        side(SGEMM_8_PASSES, Part::Addend), side(MEMORY_OR_VALU, Part::VectorsWritten), Meeting::Overlap),
    hazard(15, "MFMA of 16 passes adds to a VGPR, it is overwritten",
        side(SGEMM_16_PASSES, Part::Addend), side(MEMORY_OR_VALU, Part::VectorsWritten), Meeting::Overlap),
];

/// What double-precision matrix operations disturb beside their own registers.
#[rustfmt::skip]
const AROUND_DGEMM: &[Hazard] = &[
    hazard(2, "double-precision MFMA, v_fma_f64 follows",
        side(DGEMM, Part::Nothing), side(FMA_F64, Part::Nothing), Meeting::Always),
    Hazard {
        across: Some(DGEMM),
        ..hazard(2, "VALU writes a VGPR, double-precision MFMA, memory reads the VGPR",
            side(VALU, Part::VectorsWritten), side(MEMORY, Part::VectorsRead), Meeting::Overlap)
    },
];
