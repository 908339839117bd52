//! Matrix operations as hazards see them: their kinds and their passes.

use super::group::{Group, group};
use crate::{Class, Family, Inst};

pub(super) const MATRIX: Group = group("MFMA", |inst| inst.class() == Class::Matrix);
pub(super) const DGEMM: Group = group("double-precision MFMA", is_dgemm);
pub(super) const DGEMM_4X4: Group =
    group("v_mfma_f64_4x4x4", |inst| is_dgemm(inst) && side(inst) == Some(Side::Of4));
pub(super) const DGEMM_16X16: Group =
    group("v_mfma_f64_16x16x4", |inst| is_dgemm(inst) && side(inst) == Some(Side::Of16));
pub(super) const SGEMM: Group = group("MFMA other than double precision", is_sgemm);
/// Up to gfx90a the units are the same; gfx940 has one for narrow sources, XDL, beside the one for
/// single precision.
pub(super) const XDL: Group =
    group("MFMA of narrow elements", |inst| is_sgemm(inst) && !has_single_sources(inst));
pub(super) const NOT_XDL: Group = group("MFMA of single or double precision", |inst| {
    is_dgemm(inst) || is_sgemm(inst) && has_single_sources(inst)
});
pub(super) const SINGLE: Group =
    group("MFMA of single precision", |inst| is_sgemm(inst) && has_single_sources(inst));
pub(super) const OF_2_PASSES: Group =
    group("MFMA of 2 passes", |inst| is_sgemm(inst) && gfx940_passes(inst) == 2);
pub(super) const WMMA: Group =
    group("WMMA", |inst| inst.operation.is(Family::Wmma) || inst.operation.is(Family::SparseWmma));

/// Passes of a matrix operation other than double precision on gfx90a: they follow from rows and
/// columns.
pub(super) fn gfx90a_passes(inst: &Inst) -> u8 {
    match side(inst) {
        Some(Side::Of4) => 2,
        Some(Side::Of16) => 8,
        Some(Side::Of32) | None => 16,
    }
}

/// Passes of a matrix operation other than double precision on gfx940: twice as fast for narrow
/// elements, except for those of several blocks. Sparse operations take as long as dense ones.
pub(super) fn gfx940_passes(inst: &Inst) -> u8 {
    let has_blocks = || inst.operation.matrix().is_some_and(|shape| shape.has_blocks);
    match side(inst) {
        Some(_) if has_single_sources(inst) => gfx90a_passes(inst),
        Some(Side::Of4) => 2,
        Some(Side::Of16) if has_blocks() => 8,
        Some(Side::Of16) => 4,
        Some(Side::Of32) if !has_blocks() => 8,
        Some(Side::Of32) | None => 16,
    }
}

/// Passes of a matrix operation other than double precision on gfx950: those of gfx940, but that
/// operations with formats as modifiers take twice as long where a format has eight bits.
pub(super) fn gfx950_passes(inst: &Inst) -> u8 {
    let has_formats = inst.operation.is(Family::FormatsByModifiers);
    let is_byte = |format: u8| format < 2;
    let modifiers = &inst.modifiers;
    let more = has_formats && (is_byte(modifiers.cbsz) || is_byte(modifiers.blgp));
    gfx940_passes(inst) * if more { 2 } else { 1 }
}

/// Wait states from a matrix operation of gfx950 to what reads its result.
pub(super) fn gfx950_result(inst: &Inst) -> u8 {
    if is_dgemm(inst) {
        return if side(inst) == Some(Side::Of4) { 6 } else { 19 };
    }
    let passes = gfx950_passes(inst);
    passes + if has_single_sources(inst) { 2 } else { 3 + u8::from(passes != 2) }
}

/// Wait states to a memory instruction that reads it.
pub(super) fn gfx950_result_in_memory(inst: &Inst) -> u8 {
    double_result_in_memory(inst).unwrap_or_else(|| gfx950_result(inst))
}

/// Wait states to what overwrites it.
pub(super) fn gfx950_result_overwritten(inst: &Inst) -> u8 {
    double_result(inst).unwrap_or_else(|| gfx950_result(inst))
}

/// Wait states to a matrix operation of single or double precision that adds to a part of it.
pub(super) fn gfx950_to_other_addend(inst: &Inst) -> u8 {
    let passes = gfx950_passes(inst);
    passes + 1 + u8::from(passes != 2)
}

/// Wait states from a matrix operation of gfx90a to what reads or overwrites its result.
pub(super) fn gfx90a_result(inst: &Inst) -> u8 {
    double_result(inst).unwrap_or_else(|| gfx90a_passes(inst) + 3)
}

/// Wait states to a memory instruction that reads it.
pub(super) fn gfx90a_result_in_memory(inst: &Inst) -> u8 {
    double_result_in_memory(inst).unwrap_or_else(|| gfx90a_passes(inst) + 3)
}

/// Wait states from a matrix operation of gfx940 to what reads or overwrites its result.
pub(super) fn gfx940_result(inst: &Inst) -> u8 {
    let more = if has_single_sources(inst) { 2 } else { 3 };
    double_result(inst).unwrap_or_else(|| gfx940_passes(inst) + more)
}

/// Wait states to a memory instruction that reads it.
pub(super) fn gfx940_result_in_memory(inst: &Inst) -> u8 {
    double_result_in_memory(inst).unwrap_or_else(|| gfx940_result(inst))
}

fn double_result(inst: &Inst) -> Option<u8> {
    is_dgemm(inst).then(|| if side(inst) == Some(Side::Of4) { 6 } else { 11 })
}

fn double_result_in_memory(inst: &Inst) -> Option<u8> {
    is_dgemm(inst).then(|| if side(inst) == Some(Side::Of4) { 9 } else { 18 })
}

/// The shape of an MFMA operation, dense or sparse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatrixShape {
    /// Rows and columns; nothing where the name has others.
    side: Option<Side>,
    /// Whether it works on several blocks of narrow elements.
    has_blocks: bool,
    /// Whether A and B are of single precision.
    has_single_sources: bool,
}

/// Rows and columns of a matrix operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Of4,
    Of16,
    Of32,
}

impl MatrixShape {
    /// The shape that a canonical name has: `16x16` of `v_mfma_f32_16x16x4f32`.
    pub(crate) fn of(name: &str) -> Option<MatrixShape> {
        let rest = name.strip_prefix("v_mfma_").or_else(|| name.strip_prefix("v_smfmac_"))?;
        let rest = rest.strip_prefix("scale_").unwrap_or(rest);
        let sizes = rest.split('_').nth(1).unwrap_or_default();
        let side = [("4x4", Side::Of4), ("16x16", Side::Of16), ("32x32", Side::Of32)]
            .into_iter()
            .find_map(|(sides, side)| sizes.starts_with(sides).then_some(side));
        let is_narrow =
            |source: &str| ["f16", "bf16", "i8"].iter().any(|own| source.starts_with(own));
        let has_blocks = ["16x16x4", "32x32x4"]
            .iter()
            .any(|own| name.split_once(own).is_some_and(|(_, source)| is_narrow(source)));
        let has_single_sources = name.ends_with("f32") && !name.ends_with("xf32");
        Some(MatrixShape { side, has_blocks, has_single_sources })
    }
}

fn side(inst: &Inst) -> Option<Side> {
    inst.operation.matrix()?.side
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
