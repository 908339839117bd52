//! Double precision.

use super::choice::{maximum, minimum};
use super::row::operations;
use super::single::fraction;
use super::sources;

/// The greatest number below one.
const BELOW_ONE: f64 = f64::from_bits(0x3fef_ffff_ffff_ffff);

/// Scales a finite number other than zero by a power of two so that it is not denormal; also
/// returns the exponent of that power.
#[inline(always)]
fn normalised(value: f64) -> (f64, i32) {
    let denormal = value.to_bits() >> 52 & 0x7ff == 0;
    if denormal { (value * f64::from_bits((1023 + 64) << 52), 64) } else { (value, 0) }
}

operations! {
    /// Sums, products, scaling and fractions.
    ARITHMETIC { denormals: ByMode, rounds: ByMode, nans: Settled, levels: each_level, source: sources::ROUNDED_ONCE }

    "v_add_f64" (a: f64, b: f64; context) -> f64 { context.round.sum(a, b) }
    "v_mul_f64" (a: f64, b: f64; context) -> f64 { context.round.product(a, b) }
    "v_fma_f64" (a: f64, b: f64, c: f64; context) -> f64 { context.round.fused(a, b, c) }
    "v_fmac_f64" (a: f64, b: f64, sum: f64; context) -> f64 { context.round.fused(a, b, sum) }
    "v_fmaak_f64" (a: f64, b: f64, c: f64; context) -> f64 { context.round.fused(a, b, c) }
    "v_fmamk_f64" (a: f64, b: f64, c: f64; context) -> f64 { context.round.fused(a, b, c) }
    "v_fract_f64" (a: f64; context) -> f64 { fraction(context.round, a, BELOW_ONE) }
    "v_ldexp_f64" (a: f64, exponent: i32; context) -> f64 { context.round.scaled(a, exponent) }
}

operations! {
    /// Rounding to integral numbers, and extraction of the mantissa.
    EXACT { denormals: ByMode, rounds: Exact, nans: Settled, levels: each_level, source: sources::DEFINED }

    "v_floor_f64" (a: f64) -> f64 { a.floor() }
    "v_ceil_f64" (a: f64) -> f64 { a.ceil() }
    "v_trunc_f64" (a: f64) -> f64 { a.trunc() }
    "v_rndne_f64" (a: f64) -> f64 { a.round_ties_even() }
    "v_frexp_mant_f64" (a: f64) -> f64 {
        let mantissa = normalised(a).0.to_bits() & 0x800f_ffff_ffff_ffff | 1022 << 52;
        if a == 0.0 || !a.is_finite() { a } else { f64::from_bits(mantissa) }
    }
}

operations! {
    /// Operations that return one of the sources.
    CHOICE { denormals: ByMode, rounds: Exact, nans: Own, levels: each_level, source: sources::DEFINED }

    "v_min_f64" (a: f64, b: f64; context) -> f64 { minimum(a, b, context.mode) }
    "v_max_f64" (a: f64, b: f64; context) -> f64 { maximum(a, b, context.mode) }
}

operations! {
    /// Exponents as integers.
    PARTS { denormals: ByMode, rounds: Exact, nans: Own, levels: each_level, source: sources::DEFINED }

    "v_frexp_exp_i32_f64" (a: f64) -> i32 {
        let (normal, scale) = normalised(a);
        let exponent = (normal.to_bits() >> 52 & 0x7ff) as i32 - 1022 - scale;
        if a == 0.0 || !a.is_finite() { 0 } else { exponent }
    }
}
