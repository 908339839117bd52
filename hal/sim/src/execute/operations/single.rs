//! Single precision.

use super::choice::{maximum, median, minimum};
use super::row::operations;
use super::sources;
use crate::execute::lane::rounding::{Number, Rounder};

/// Replaces a denormal by zero with its sign.
#[inline(always)]
pub(super) fn flush(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits(if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits })
}

/// `a * b + c`, both results rounded, denormals flushed in any mode.
#[inline(always)]
fn multiply_then_add(round: impl Rounder, a: f32, b: f32, c: f32) -> f32 {
    let product = flush(round.product(flush(a), flush(b)));
    flush(round.sum(product, flush(c)))
}

/// A product in which zero times anything is zero ("DX9 rules").
#[inline(always)]
fn multiply_legacy(round: impl Rounder, a: f32, b: f32) -> f32 {
    if a == 0.0 || b == 0.0 { 0.0 } else { round.product(a, b) }
}

/// Fused multiply-add with "DX9 rules", rounded once (RDNA 3 ISA, `V_FMA_DX9_ZERO_F32`).
#[inline(always)]
fn fused_legacy(round: impl Rounder, a: f32, b: f32, c: f32) -> f32 {
    if a == 0.0 || b == 0.0 { c } else { round.fused(a, b, c) }
}

/// Difference to the floor, rounded, but less than one (ISA manual, `V_FRACT_F32`: "Obey round
/// mode, result clamped").
#[inline(always)]
pub(super) fn fraction<T: Number>(round: impl Rounder, a: T, below_one: T) -> T {
    let fraction = round.sum(a, a.rounded_down().negated());
    if fraction.above(below_one) { below_one } else { fraction }
}

/// The greatest number below one.
const BELOW_ONE: f32 = f32::from_bits(0x3f7f_ffff);

operations! {
    /// Sums, products, scaling and fractions.
    ARITHMETIC { denormals: ByMode, rounds: ByMode, nans: Settled, levels: each_level, source: sources::ROUNDED_ONCE }

    "v_add_f32" (a: f32, b: f32; context) -> f32 { context.round.sum(a, b) }
    "v_sub_f32" (a: f32, b: f32; context) -> f32 { context.round.sum(a, -b) }
    "v_subrev_f32" (a: f32, b: f32; context) -> f32 { context.round.sum(b, -a) }
    "v_mul_f32" (a: f32, b: f32; context) -> f32 { context.round.product(a, b) }
    "v_mul_legacy_f32" (a: f32, b: f32; context) -> f32 { multiply_legacy(context.round, a, b) }
    "v_fma_legacy_f32" (a: f32, b: f32, c: f32; context) -> f32 {
        fused_legacy(context.round, a, b, c)
    }
    "v_fmac_legacy_f32" (a: f32, b: f32, sum: f32; context) -> f32 {
        fused_legacy(context.round, a, b, sum)
    }
    // Product for specular lighting.
    "v_mullit_f32" (a: f32, b: f32, c: f32; context) -> f32 {
        let is_dark = b <= f32::MIN || b.is_nan() || c <= 0.0 || c.is_nan();
        if is_dark { f32::MIN } else { context.round.product(a, b) }
    }
    "v_fma_f32" (a: f32, b: f32, c: f32; context) -> f32 { context.round.fused(a, b, c) }
    "v_fmac_f32" (a: f32, b: f32, sum: f32; context) -> f32 { context.round.fused(a, b, sum) }
    "v_fmaak_f32" (a: f32, b: f32, literal: f32; context) -> f32 {
        context.round.fused(a, b, literal)
    }
    "v_fmamk_f32" (a: f32, literal: f32, c: f32; context) -> f32 {
        context.round.fused(a, literal, c)
    }
    "v_fract_f32" (a: f32; context) -> f32 { fraction(context.round, a, BELOW_ONE) }
    "v_ldexp_f32" (a: f32, exponent: i32; context) -> f32 { context.round.scaled(a, exponent) }
}

operations! {
    /// Rounding to integral numbers, and extraction of the mantissa.
    EXACT { denormals: ByMode, rounds: Exact, nans: Settled, levels: each_level, source: sources::DEFINED }

    "v_floor_f32" (a: f32) -> f32 { a.floor() }
    "v_ceil_f32" (a: f32) -> f32 { a.ceil() }
    "v_trunc_f32" (a: f32) -> f32 { a.trunc() }
    "v_rndne_f32" (a: f32) -> f32 { a.round_ties_even() }
    "v_frexp_mant_f32" (a: f32) -> f32 {
        let bits = f64::from(a).to_bits();
        let mantissa = bits & 0x800f_ffff_ffff_ffff | 1022 << 52;
        if a == 0.0 || !a.is_finite() { a } else { f64::from_bits(mantissa) as f32 }
    }
}

operations! {
    /// Multiply-add with two roundings. It flushes denormals in any mode (ISA manual, `V_MAD_F16`);
    /// LLVM selects it only in functions that flush them.
    UNFUSED { denormals: Flushed, rounds: ByMode, nans: Settled, levels: each_level, source: sources::DEFINED }

    "v_mad_f32" (a: f32, b: f32, c: f32; context) -> f32 {
        multiply_then_add(context.round, a, b, c)
    }
    "v_mac_f32" (a: f32, b: f32, sum: f32; context) -> f32 {
        multiply_then_add(context.round, a, b, sum)
    }
    "v_madak_f32" (a: f32, b: f32, literal: f32; context) -> f32 {
        multiply_then_add(context.round, a, b, literal)
    }
    "v_madmk_f32" (a: f32, literal: f32, c: f32; context) -> f32 {
        multiply_then_add(context.round, a, literal, c)
    }
    "v_mad_legacy_f32" (a: f32, b: f32, c: f32; context) -> f32 {
        let product = flush(multiply_legacy(context.round, flush(a), flush(b)));
        flush(context.round.sum(product, flush(c)))
    }
}

operations! {
    /// Operations that return one of the sources; [`super::choice`] has the NaN rules.
    CHOICE { denormals: ByMode, rounds: Exact, nans: Own, levels: each_level, source: sources::DEFINED }

    "v_min_f32" (a: f32, b: f32; context) -> f32 { minimum(a, b, context.mode) }
    "v_max_f32" (a: f32, b: f32; context) -> f32 { maximum(a, b, context.mode) }
    "v_min3_f32" (a: f32, b: f32, c: f32; context) -> f32 {
        minimum(minimum(a, b, context.mode), c, context.mode)
    }
    "v_max3_f32" (a: f32, b: f32, c: f32; context) -> f32 {
        maximum(maximum(a, b, context.mode), c, context.mode)
    }
    "v_maxmin_f32" (a: f32, b: f32, c: f32; context) -> f32 {
        minimum(maximum(a, b, context.mode), c, context.mode)
    }
    "v_minmax_f32" (a: f32, b: f32, c: f32; context) -> f32 {
        maximum(minimum(a, b, context.mode), c, context.mode)
    }
    "v_med3_f32" (a: f32, b: f32, c: f32; context) -> f32 { median(a, b, c, context.mode) }
}

operations! {
    /// Exponents as integers.
    PARTS { denormals: ByMode, rounds: Exact, nans: Own, levels: each_level, source: sources::DEFINED }

    "v_frexp_exp_i32_f32" (a: f32) -> i32 {
        let exponent = (f64::from(a).to_bits() >> 52 & 0x7ff) as i32 - 1022;
        if a == 0.0 || !a.is_finite() { 0 } else { exponent }
    }
}
