//! The MODE register.

use flipwave_isa::Generation;

/// The MODE register (ISA manual, "MODE register").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode(pub u32);

impl Mode {
    /// Returns `true` if vector registers are indexed by M0 (`gpr_idx_en`).
    #[inline(always)]
    pub fn indexes_vgprs(self) -> bool {
        self.0 & Mode::GPR_INDEX != 0
    }

    /// Bit that enables indexing of vector registers.
    pub const GPR_INDEX: u32 = 1 << 27;

    /// Returns `true` if vector instructions are skipped (`vskip`).
    pub fn skips_vectors(self) -> bool {
        self.0 & Mode::SKIP_VECTORS != 0
    }

    /// Bit that skips vector instructions.
    pub const SKIP_VECTORS: u32 = 1 << 28;

    /// Returns `true` if MODE indexes the registers of vector instructions or skips them.
    #[inline(always)]
    pub fn changes_vectors(self) -> bool {
        self.0 & (Mode::GPR_INDEX | Mode::SKIP_VECTORS) != 0
    }

    /// Entries of the stack of divergent branches (`csp`).
    pub fn branch_depth(self) -> u32 {
        self.0 >> 29
    }

    /// Mode with `depth` entries on the stack of divergent branches; the field counts modulo eight.
    pub fn with_branch_depth(self, depth: u32) -> Mode {
        Mode(self.0 & 0x1fff_ffff | depth << 29)
    }

    /// Field that rounds single precision (`FP_ROUND[1:0]`).
    pub const ROUND_SINGLE: u32 = 0x3;

    /// Field that rounds double and half precision (`FP_ROUND[3:2]`).
    pub const ROUND_DOUBLE: u32 = 0xc;

    /// Bit that clamps half-precision overflow to the largest number.
    pub const FP16_OVERFLOW: u32 = 1 << 23;

    /// Denormal sources of single precision read as zero.
    #[inline(always)]
    pub fn flushes_f32_sources(self) -> bool {
        self.0 >> 4 & 1 == 0
    }

    /// Denormal results of single precision are written as zero.
    #[inline(always)]
    pub fn flushes_f32_results(self) -> bool {
        self.0 >> 5 & 1 == 0
    }

    /// Denormal sources of double and half precision read as zero.
    #[inline(always)]
    pub fn flushes_f64_sources(self) -> bool {
        self.0 >> 6 & 1 == 0
    }

    /// Denormal results of double and half precision are written as zero.
    #[inline(always)]
    pub fn flushes_f64_results(self) -> bool {
        self.0 >> 7 & 1 == 0
    }

    /// Clamping turns NaN into zero.
    #[inline(always)]
    pub fn dx10_clamp(self) -> bool {
        self.0 & Mode::DX10_CLAMP != 0
    }

    /// Bit that makes clamping turn NaN into zero.
    const DX10_CLAMP: u32 = 1 << 8;

    /// Bits that are always set in a generation: MODE of gfx12 has no `DX10_CLAMP`, and NaN is
    /// always clamped to zero (RDNA 4 ISA, "Output modifiers").
    pub fn always_set(generation: Generation) -> u32 {
        if generation >= Generation::Gfx12 { Mode::DX10_CLAMP } else { 0 }
    }

    /// IEEE rules for signalling NaNs.
    #[inline(always)]
    pub fn ieee(self) -> bool {
        self.0 >> 9 & 1 != 0
    }
}
