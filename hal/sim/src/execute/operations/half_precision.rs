//! Half precision. Operations new in gfx9, and `v_mac_f16` and its forms with a literal, keep the
//! high half of the destination; the others clear it.

use super::choice::{maximum, median, minimum};
use super::row::operations;
use super::single::fraction;
use super::sources;
use crate::execute::lane::LowHalf;
use crate::execute::lane::binary16::{flush, from_f32, to_f32};
use crate::execute::lane::rounding::{Number, Rounder};
use half::f16;

/// The greatest number below one.
const BELOW_ONE: f16 = f16::from_bits(0x3bff);

operations! {
    /// Sums, products, scaling and fractions.
    ARITHMETIC { denormals: ByMode, rounds: ByMode, nans: Settled, levels: each_level, source: sources::ROUNDED_ONCE }

    "v_add_f16" (a: f16, b: f16; context) -> f16 { context.round.sum(a, b) }
    "v_sub_f16" (a: f16, b: f16; context) -> f16 { context.round.sum(a, -b) }
    "v_subrev_f16" (a: f16, b: f16; context) -> f16 { context.round.sum(b, -a) }
    "v_mul_f16" (a: f16, b: f16; context) -> f16 { context.round.product(a, b) }
    "v_fma_f16" (a: f16, b: f16, c: f16; context) -> LowHalf<f16> {
        LowHalf(context.round.fused(a, b, c))
    }
    "v_fmac_f16" (a: f16, b: f16, sum: f16; context) -> LowHalf<f16> {
        LowHalf(context.round.fused(a, b, sum))
    }
    "v_fmaak_f16" (a: f16, b: f16, literal: f16; context) -> LowHalf<f16> {
        LowHalf(context.round.fused(a, b, literal))
    }
    "v_fmamk_f16" (a: f16, literal: f16, c: f16; context) -> LowHalf<f16> {
        LowHalf(context.round.fused(a, literal, c))
    }
    "v_fma_legacy_f16" (a: f16, b: f16, c: f16; context) -> f16 { context.round.fused(a, b, c) }
    "v_fract_f16" (a: f16; context) -> f16 { fraction(context.round, a, BELOW_ONE) }
    "v_ldexp_f16" (a: f16, exponent: i16; context) -> f16 {
        context.round.scaled(a, exponent.into())
    }
}

operations! {
    /// Rounding to integral numbers, and extraction of the mantissa.
    EXACT { denormals: ByMode, rounds: Exact, nans: Settled, levels: each_level, source: sources::DEFINED }

    "v_floor_f16" (a: f16) -> f16 { a.rounded_down() }
    "v_ceil_f16" (a: f16) -> f16 { from_f32(to_f32(a).ceil()) }
    "v_trunc_f16" (a: f16) -> f16 { from_f32(to_f32(a).trunc()) }
    "v_rndne_f16" (a: f16) -> f16 { from_f32(to_f32(a).round_ties_even()) }
    "v_frexp_mant_f16" (a: f16) -> f16 {
        let wide = to_f32(a);
        let mantissa = wide.to_bits() & 0x807f_ffff | 126 << 23;
        if wide == 0.0 || !wide.is_finite() { a } else { from_f32(f32::from_bits(mantissa)) }
    }
}

/// `a * b + c`, both results rounded, denormals flushed in any mode.
#[inline(always)]
fn multiply_then_add(round: impl Rounder, a: f16, b: f16, c: f16) -> f16 {
    let product = flush(round.product(flush(a), flush(b)));
    flush(round.sum(product, flush(c)))
}

operations! {
    /// Multiply-add with two roundings (ISA manual, `V_MAD_F16`: "denormals are flushed").
    UNFUSED { denormals: Flushed, rounds: ByMode, nans: Settled, levels: each_level, source: sources::DEFINED }

    "v_mad_f16" (a: f16, b: f16, c: f16; context) -> LowHalf<f16> {
        LowHalf(multiply_then_add(context.round, a, b, c))
    }
    "v_mac_f16" (a: f16, b: f16, sum: f16; context) -> LowHalf<f16> {
        LowHalf(multiply_then_add(context.round, a, b, sum))
    }
    "v_madak_f16" (a: f16, b: f16, literal: f16; context) -> LowHalf<f16> {
        LowHalf(multiply_then_add(context.round, a, b, literal))
    }
    "v_madmk_f16" (a: f16, literal: f16, c: f16; context) -> LowHalf<f16> {
        LowHalf(multiply_then_add(context.round, a, literal, c))
    }
    "v_mad_legacy_f16" (a: f16, b: f16, c: f16; context) -> f16 {
        multiply_then_add(context.round, a, b, c)
    }
}

operations! {
    /// Operations that return one of the sources.
    CHOICE { denormals: ByMode, rounds: Exact, nans: Own, levels: each_level, source: sources::DEFINED }

    "v_min_f16" (a: f16, b: f16; context) -> f16 { minimum(a, b, context.mode) }
    "v_max_f16" (a: f16, b: f16; context) -> f16 { maximum(a, b, context.mode) }
    "v_min3_f16" (a: f16, b: f16, c: f16; context) -> LowHalf<f16> {
        LowHalf(minimum(minimum(a, b, context.mode), c, context.mode))
    }
    "v_max3_f16" (a: f16, b: f16, c: f16; context) -> LowHalf<f16> {
        LowHalf(maximum(maximum(a, b, context.mode), c, context.mode))
    }
    "v_maxmin_f16" (a: f16, b: f16, c: f16; context) -> LowHalf<f16> {
        LowHalf(minimum(maximum(a, b, context.mode), c, context.mode))
    }
    "v_minmax_f16" (a: f16, b: f16, c: f16; context) -> LowHalf<f16> {
        LowHalf(maximum(minimum(a, b, context.mode), c, context.mode))
    }
    "v_med3_f16" (a: f16, b: f16, c: f16; context) -> LowHalf<f16> {
        LowHalf(median(a, b, c, context.mode))
    }
}

operations! {
    /// Exponents as integers.
    PARTS { denormals: ByMode, rounds: Exact, nans: Own, levels: each_level, source: sources::DEFINED }

    "v_frexp_exp_i16_f16" (a: f16) -> i16 {
        let wide = to_f32(a);
        let exponent = (wide.to_bits() >> 23 & 0xff) as i16 - 126;
        if wide == 0.0 || !wide.is_finite() { 0 } else { exponent }
    }
}
