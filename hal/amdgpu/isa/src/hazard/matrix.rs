//! Groups of matrix operations for hazards, and their numbers of passes.

use super::group::{Group, group};
use crate::matrix_shape::Tile;
use crate::{Class, Family, Inst};

pub(super) const MATRIX: Group = group("MFMA", |inst| inst.class() == Class::Matrix);
pub(super) const DGEMM: Group = group("double-precision MFMA", is_dgemm);
pub(super) const DGEMM_4X4: Group =
    group("v_mfma_f64_4x4x4", |inst| is_dgemm(inst) && tile(inst) == Some(Tile::Size4));
pub(super) const DGEMM_16X16: Group =
    group("v_mfma_f64_16x16x4", |inst| is_dgemm(inst) && tile(inst) == Some(Tile::Size16));
pub(super) const SGEMM: Group = group("MFMA other than double precision", is_sgemm);
/// MFMA on the XDL unit, which gfx940 has for narrow sources in addition to the single-precision unit. Up to
/// gfx90a one unit executes both.
pub(super) const XDL: Group = group("XDL MFMA", |inst| is_sgemm(inst) && !has_single_sources(inst));
pub(super) const NOT_XDL: Group =
    group("non-XDL MFMA", |inst| is_dgemm(inst) || is_sgemm(inst) && has_single_sources(inst));
pub(super) const SINGLE: Group =
    group("single-precision MFMA", |inst| is_sgemm(inst) && has_single_sources(inst));
pub(super) const OF_2_PASSES: Group =
    group("MFMA of 2 passes", |inst| is_sgemm(inst) && gfx940_passes(inst) == 2);
pub(super) const WMMA: Group =
    group("WMMA", |inst| inst.operation.is(Family::Wmma) || inst.operation.is(Family::SparseWmma));

/// Matrix operations of gfx1250 that execute next to other vector operations: those on elements of 16 bits or
/// less with the shapes that gfx1250 adds.
pub(super) const XDL_WMMA: Group = group("XDL WMMA", |inst| coexecuted_operations(inst).is_some());
pub(super) const COEXECUTED_2: Group =
    group("WMMA next to 2 VALU", |inst| coexecuted_operations(inst) == Some(2));
pub(super) const COEXECUTED_4: Group =
    group("WMMA next to 4 VALU", |inst| coexecuted_operations(inst) == Some(4));
pub(super) const COEXECUTED_8: Group =
    group("WMMA next to 8 VALU", |inst| coexecuted_operations(inst) == Some(8));

/// Number of vector operations that may execute next to a matrix operation of gfx1250; `None` for operations
/// that execute alone (LLVM, `checkWMMACoexecutionHazards`).
fn coexecuted_operations(inst: &Inst) -> Option<u8> {
    let is_sparse = inst.operation.is(Family::SparseWmma);
    if !is_sparse && !inst.operation.is(Family::Wmma) {
        return None;
    }
    let name = inst.operation.name();
    let has_shape = |shapes: &[&str]| shapes.iter().any(|shape| name.contains(shape));
    let is_integer = name.ends_with("_iu8");
    let is_8_bit = |format: u8| format < 2;
    let modifiers = &inst.modifiers;
    if is_sparse {
        return has_shape(&["_16x16x64_f16", "_16x16x64_bf16", "_16x16x128_"])
            .then_some(if is_integer { 4 } else { 2 });
    }
    if !has_shape(&["_16x16x32_f16", "_16x16x32_bf16", "_16x16x64_", "_16x16x128_", "_32x16x128_"])
    {
        return None;
    }
    let is_slow =
        name.ends_with("_f8f6f4") && (is_8_bit(modifiers.cbsz) || is_8_bit(modifiers.blgp));
    Some(if is_integer || is_slow { 8 } else { 4 })
}

/// Passes of a matrix operation other than double precision on gfx90a, which depend only on rows and
/// columns.
pub(super) fn gfx90a_passes(inst: &Inst) -> u8 {
    match tile(inst) {
        Some(Tile::Size4) => 2,
        Some(Tile::Size16) => 8,
        Some(Tile::Size32) | None => 16,
    }
}

/// Passes of a matrix operation other than double precision on gfx940: half as many for narrow
/// elements, except for operations on several blocks. Sparse operations take as many as dense ones.
pub(super) fn gfx940_passes(inst: &Inst) -> u8 {
    let has_blocks = || inst.operation.matrix().is_some_and(|shape| shape.has_blocks);
    match tile(inst) {
        Some(_) if has_single_sources(inst) => gfx90a_passes(inst),
        Some(Tile::Size4) => 2,
        Some(Tile::Size16) if has_blocks() => 8,
        Some(Tile::Size16) => 4,
        Some(Tile::Size32) if !has_blocks() => 8,
        Some(Tile::Size32) | None => 16,
    }
}

/// Passes of a matrix operation other than double precision on gfx950: those of gfx940, but twice as many
/// for operations with selectable formats if A or B has an 8-bit format.
pub(super) fn gfx950_passes(inst: &Inst) -> u8 {
    let has_formats = inst.operation.is(Family::MixedFormatMatrix);
    let is_8_bit = |format: u8| format < 2;
    let modifiers = &inst.modifiers;
    let is_slow = has_formats && (is_8_bit(modifiers.cbsz) || is_8_bit(modifiers.blgp));
    gfx940_passes(inst) * if is_slow { 2 } else { 1 }
}

/// Wait states between a matrix operation and a read of its result on gfx950.
pub(super) fn gfx950_result(inst: &Inst) -> u8 {
    if is_dgemm(inst) {
        return if tile(inst) == Some(Tile::Size4) { 6 } else { 19 };
    }
    let passes = gfx950_passes(inst);
    passes + if has_single_sources(inst) { 2 } else { 3 + u8::from(passes != 2) }
}

/// Wait states between a matrix operation and a memory instruction that reads its result on gfx950.
pub(super) fn gfx950_result_in_memory(inst: &Inst) -> u8 {
    double_result_in_memory(inst).unwrap_or_else(|| gfx950_result(inst))
}

/// Wait states between a matrix operation and an instruction that overwrites its result on gfx950.
pub(super) fn gfx950_result_overwritten(inst: &Inst) -> u8 {
    double_result(inst).unwrap_or_else(|| gfx950_result(inst))
}

/// Wait states between an XDL operation and a single- or double-precision one that reads part of its result
/// as SrcC on gfx950.
pub(super) fn gfx950_to_non_xdl_src_c(inst: &Inst) -> u8 {
    let passes = gfx950_passes(inst);
    passes + 1 + u8::from(passes != 2)
}

/// Wait states between a matrix operation and a read or overwrite of its result on gfx90a.
pub(super) fn gfx90a_result(inst: &Inst) -> u8 {
    double_result(inst).unwrap_or_else(|| gfx90a_passes(inst) + 3)
}

/// Wait states between a matrix operation and a memory instruction that reads its result on gfx90a.
pub(super) fn gfx90a_result_in_memory(inst: &Inst) -> u8 {
    double_result_in_memory(inst).unwrap_or_else(|| gfx90a_passes(inst) + 3)
}

/// Wait states between a matrix operation and a read or overwrite of its result on gfx940.
pub(super) fn gfx940_result(inst: &Inst) -> u8 {
    let extra = if has_single_sources(inst) { 2 } else { 3 };
    double_result(inst).unwrap_or_else(|| gfx940_passes(inst) + extra)
}

/// Wait states between a matrix operation and a memory instruction that reads its result on gfx940.
pub(super) fn gfx940_result_in_memory(inst: &Inst) -> u8 {
    double_result_in_memory(inst).unwrap_or_else(|| gfx940_result(inst))
}

/// Wait states between a double-precision operation and an overwrite of its result, and up to gfx940 also a
/// read.
fn double_result(inst: &Inst) -> Option<u8> {
    is_dgemm(inst).then(|| if tile(inst) == Some(Tile::Size4) { 6 } else { 11 })
}

/// Wait states between a double-precision operation and a memory instruction that reads its result.
fn double_result_in_memory(inst: &Inst) -> Option<u8> {
    is_dgemm(inst).then(|| if tile(inst) == Some(Tile::Size4) { 9 } else { 18 })
}

fn tile(inst: &Inst) -> Option<Tile> {
    inst.operation.matrix()?.tile
}

fn is_dgemm(inst: &Inst) -> bool {
    inst.operation.is(Family::MfmaF64)
}

fn is_sgemm(inst: &Inst) -> bool {
    inst.class() == Class::Matrix && !is_dgemm(inst)
}

fn has_single_sources(inst: &Inst) -> bool {
    inst.operation.matrix().is_some_and(|shape| shape.has_single_sources)
}
