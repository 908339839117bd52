//! Address arithmetic of each family of memory instructions, and the range of its constant offset.
//! Buffers have [separate rules](crate::buffer_rules).

use std::ops::RangeInclusive;

/// Operands of an address sum, and the width of the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// A pair of vector registers and the constant, in 64 bits.
    Pair,
    /// A pair of scalar registers, an unsigned vector register and the constant, in 64 bits.
    BaseAndUnsigned,
    /// A pair of scalar registers, a signed vector register and the constant, in 64 bits.
    BaseAndSigned,
    /// A vector register and the constant, in 32 bits, wrapping.
    Offset,
    /// A scalar register and the constant, in 32 bits, wrapping.
    ScalarOffset,
    /// A vector register, a scalar register and the constant, in 32 bits, wrapping.
    BothOffsets,
    /// A pair of scalar registers, an unsigned scalar register and the constant, in 64 bits. The
    /// two lowest bits of the pair and of the sum of the offsets are dropped.
    Scalar,
}

impl Sum {
    /// Returns the description that the generated documentation shows.
    pub fn describe(self) -> &'static str {
        match self {
            Sum::Pair => "VGPR pair + constant, 64 bits",
            Sum::BaseAndUnsigned => "SGPR pair + unsigned VGPR + constant, 64 bits",
            Sum::BaseAndSigned => "SGPR pair + signed VGPR + constant, 64 bits",
            Sum::Offset => "VGPR + constant, 32 bits",
            Sum::ScalarOffset => "SGPR + constant, 32 bits",
            Sum::BothOffsets => "VGPR + SGPR + constant, 32 bits",
            Sum::Scalar => "SGPR pair + unsigned SGPR + constant, 64 bits; lowest two bits dropped",
        }
    }
}

/// Address arithmetic of a family of instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressRule {
    /// The family.
    pub family: &'static str,
    /// Processors with this rule, one of each kind.
    pub processors: &'static [&'static str],
    /// An instruction of the family, with `CONSTANT` in place of the number.
    pub example: &'static str,
    /// Operands of the sum.
    pub sum: Sum,
    /// Constants that the encoding can hold.
    pub constants: RangeInclusive<i64>,
    /// Document or code that states the rule.
    pub source: &'static str,
}

const GFX9: &[&str] = &["gfx906", "gfx908", "gfx90a", "gfx942", "gfx950"];
const GFX11: &[&str] = &["gfx1100", "gfx1151"];
const GFX12: &[&str] = &["gfx1201"];
const GFX125: &[&str] = &["gfx1250"];

const OFFSET_BITS: &str = "LLVM, `getNumFlatOffsetBits`, `isLegalFLATOffset`";
const SIGNED_BASE: &str = "LLVM, `hasSignedGVSOffset`";
const SCRATCH: &str = "LLVM, `isFlatScratchBaseLegal`; registers are unsigned, and must not wrap";
const SIGNED_SCRATCH: &str = "LLVM, `hasSignedScratchOffsets`";
const LDS: &str = "LLVM, `isDSOffsetLegal`, `hasUsableDSOffset`";
const SCALAR: &str = "LLVM, `isLegalSMRDEncodedSignedOffset`; CDNA 3 ISA 8.2.1";

macro_rules! rule {
    ($family:literal, $processors:expr, $example:literal, $sum:ident, $constants:expr, $source:expr) => {
        AddressRule {
            family: $family,
            processors: $processors,
            example: $example,
            sum: Sum::$sum,
            constants: $constants,
            source: $source,
        }
    };
}

/// All address rules.
#[rustfmt::skip]
pub const RULES: &[AddressRule] = &[
    rule!("flat", GFX9, "flat_load_dword v0, v[2:3] offset:CONSTANT", Pair, 0..=4095, OFFSET_BITS),
    rule!("flat", &["gfx1030"], "flat_load_dword v0, v[2:3] offset:CONSTANT", Pair, 0..=2047, OFFSET_BITS),
    rule!("flat", GFX11, "flat_load_b32 v0, v[2:3] offset:CONSTANT", Pair, 0..=4095, OFFSET_BITS),
    rule!("flat", GFX12, "flat_load_b32 v0, v[2:3] offset:CONSTANT", Pair, -8_388_608..=8_388_607, OFFSET_BITS),
    rule!("flat", GFX125, "flat_load_b32 v0, v[2:3] offset:CONSTANT", Pair, -8_388_608..=8_388_607, OFFSET_BITS),
    rule!("flat, scalar base", GFX125, "flat_load_b32 v0, v2, s[2:3] offset:CONSTANT", BaseAndSigned, -8_388_608..=8_388_607, SIGNED_BASE),
    rule!("global", GFX9, "global_load_dword v0, v[2:3], off offset:CONSTANT", Pair, -4096..=4095, OFFSET_BITS),
    rule!("global", &["gfx1030"], "global_load_dword v0, v[2:3], off offset:CONSTANT", Pair, -2048..=2047, OFFSET_BITS),
    rule!("global", GFX11, "global_load_b32 v0, v[2:3], off offset:CONSTANT", Pair, -4096..=4095, OFFSET_BITS),
    rule!("global", GFX12, "global_load_b32 v0, v[2:3], off offset:CONSTANT", Pair, -8_388_608..=8_388_607, OFFSET_BITS),
    rule!("global", GFX125, "global_load_b32 v0, v[2:3], off offset:CONSTANT", Pair, -8_388_608..=8_388_607, OFFSET_BITS),
    rule!("global, scalar base", GFX9, "global_load_dword v0, v2, s[2:3] offset:CONSTANT", BaseAndUnsigned, -4096..=4095, OFFSET_BITS),
    rule!("global, scalar base", &["gfx1030"], "global_load_dword v0, v2, s[2:3] offset:CONSTANT", BaseAndUnsigned, -2048..=2047, OFFSET_BITS),
    rule!("global, scalar base", GFX11, "global_load_b32 v0, v2, s[2:3] offset:CONSTANT", BaseAndUnsigned, -4096..=4095, OFFSET_BITS),
    rule!("global, scalar base", GFX12, "global_load_b32 v0, v2, s[2:3] offset:CONSTANT", BaseAndUnsigned, -8_388_608..=8_388_607, OFFSET_BITS),
    rule!("global, scalar base", GFX125, "global_load_b32 v0, v2, s[2:3] offset:CONSTANT", BaseAndSigned, -8_388_608..=8_388_607, SIGNED_BASE),
    rule!("scratch, VGPR", GFX9, "scratch_load_dword v0, v2, off offset:CONSTANT", Offset, -4096..=4095, SCRATCH),
    rule!("scratch, VGPR", &["gfx1030"], "scratch_load_dword v0, v2, off offset:CONSTANT", Offset, -2048..=2047, SCRATCH),
    rule!("scratch, VGPR", GFX11, "scratch_load_b32 v0, v2, off offset:CONSTANT", Offset, -4096..=4095, SCRATCH),
    rule!("scratch, VGPR", GFX12, "scratch_load_b32 v0, v2, off offset:CONSTANT", Offset, -8_388_608..=8_388_607, SIGNED_SCRATCH),
    rule!("scratch, VGPR", GFX125, "scratch_load_b32 v0, v2, off offset:CONSTANT", Offset, -8_388_608..=8_388_607, SIGNED_SCRATCH),
    rule!("scratch, SGPR", GFX9, "scratch_load_dword v0, off, s2 offset:CONSTANT", ScalarOffset, -4096..=4095, SCRATCH),
    rule!("scratch, SGPR", &["gfx1030"], "scratch_load_dword v0, off, s2 offset:CONSTANT", ScalarOffset, -2048..=2047, SCRATCH),
    rule!("scratch, SGPR", GFX11, "scratch_load_b32 v0, off, s2 offset:CONSTANT", ScalarOffset, -4096..=4095, SCRATCH),
    rule!("scratch, SGPR", GFX12, "scratch_load_b32 v0, off, s2 offset:CONSTANT", ScalarOffset, -8_388_608..=8_388_607, SIGNED_SCRATCH),
    rule!("scratch, SGPR", GFX125, "scratch_load_b32 v0, off, s2 offset:CONSTANT", ScalarOffset, -8_388_608..=8_388_607, SIGNED_SCRATCH),
    rule!("scratch, both", &["gfx942", "gfx950"], "scratch_load_dword v0, v2, s2 offset:CONSTANT", BothOffsets, -4096..=4095, SCRATCH),
    rule!("scratch, both", GFX11, "scratch_load_b32 v0, v2, s2 offset:CONSTANT", BothOffsets, -4096..=4095, SCRATCH),
    rule!("scratch, both", GFX12, "scratch_load_b32 v0, v2, s2 offset:CONSTANT", BothOffsets, -8_388_608..=8_388_607, SIGNED_SCRATCH),
    rule!("scratch, both", GFX125, "scratch_load_b32 v0, v2, s2 offset:CONSTANT", BothOffsets, -8_388_608..=8_388_607, SIGNED_SCRATCH),
    rule!("LDS", GFX9, "ds_read_b32 v0, v2 offset:CONSTANT", Offset, 0..=65535, LDS),
    rule!("LDS", &["gfx1030"], "ds_read_b32 v0, v2 offset:CONSTANT", Offset, 0..=65535, LDS),
    rule!("LDS", GFX11, "ds_load_b32 v0, v2 offset:CONSTANT", Offset, 0..=65535, LDS),
    rule!("LDS", GFX12, "ds_load_b32 v0, v2 offset:CONSTANT", Offset, 0..=65535, LDS),
    rule!("LDS", GFX125, "ds_load_b32 v0, v2 offset:CONSTANT", Offset, 0..=65535, LDS),
    rule!("scalar", GFX9, "s_load_dword s0, s[2:3], s4 offset:CONSTANT", Scalar, -1_048_576..=1_048_575, SCALAR),
    rule!("scalar", &["gfx1030"], "s_load_dword s0, s[2:3], s4 offset:CONSTANT", Scalar, -1_048_576..=1_048_575, SCALAR),
    rule!("scalar", GFX11, "s_load_b32 s0, s[2:3], s4 offset:CONSTANT", Scalar, -1_048_576..=1_048_575, SCALAR),
    rule!("scalar", GFX12, "s_load_b32 s0, s[2:3], s4 offset:CONSTANT", Scalar, -8_388_608..=8_388_607, SCALAR),
    rule!("scalar", GFX125, "s_load_b32 s0, s[2:3], s4 offset:CONSTANT", Scalar, -8_388_608..=8_388_607, SCALAR),
];

#[cfg(test)]
mod tests;
