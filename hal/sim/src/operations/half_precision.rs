//! Half precision. Operations that came with gfx9, and `v_mac_f16` and its forms with a literal,
//! keep the high half of the destination; the others clear it.

use super::binary16::{add, from_f32, multiply, multiply_add, multiply_then_add, subtract, to_f32};
use super::choice::{maximum, median, minimum};
use super::operations;
use crate::lane_value::LowHalf;
use half::f16;

/// The greatest number below one.
const BELOW_ONE: f32 = 1.0 - 1.0 / 2048.0;

operations! {
    /// Sums, products and roundings.
    ARITHMETIC { flushes: true, settles: true, levels: of }

    "v_add_f16" (a: f16, b: f16) -> f16 { add(a, b) }
    "v_sub_f16" (a: f16, b: f16) -> f16 { subtract(a, b) }
    "v_subrev_f16" (a: f16, b: f16) -> f16 { subtract(b, a) }
    "v_mul_f16" (a: f16, b: f16) -> f16 { multiply(a, b) }
    "v_fma_f16" (a: f16, b: f16, c: f16) -> LowHalf<f16> { LowHalf(multiply_add(a, b, c)) }
    "v_fma_legacy_f16" (a: f16, b: f16, c: f16) -> f16 { multiply_add(a, b, c) }

    "v_floor_f16" (a: f16) -> f16 { from_f32(to_f32(a).floor()) }
    "v_ceil_f16" (a: f16) -> f16 { from_f32(to_f32(a).ceil()) }
    "v_trunc_f16" (a: f16) -> f16 { from_f32(to_f32(a).trunc()) }
    "v_rndne_f16" (a: f16) -> f16 { from_f32(to_f32(a).round_ties_even()) }
    "v_fract_f16" (a: f16) -> f16 {
        let a = to_f32(a);
        let fraction = a - a.floor();
        from_f32(if fraction > BELOW_ONE { BELOW_ONE } else { fraction })
    }
    "v_ldexp_f16" (a: f16, exponent: i16) -> f16 {
        // Beyond these bounds every number is zero or infinite.
        let exponent = i32::from(exponent).clamp(-60, 60);
        from_f32(to_f32(a) * f32::from_bits(((127 + exponent) as u32) << 23))
    }
    "v_frexp_mant_f16" (a: f16) -> f16 {
        let wide = to_f32(a);
        let mantissa = wide.to_bits() & 0x807f_ffff | 126 << 23;
        if wide == 0.0 || !wide.is_finite() { a } else { from_f32(f32::from_bits(mantissa)) }
    }
}

operations! {
    /// Multiply-add with two roundings.
    UNFUSED { flushes: false, settles: true, levels: of }

    "v_mad_f16" (a: f16, b: f16, c: f16) -> LowHalf<f16> { LowHalf(multiply_then_add(a, b, c)) }
    "v_mac_f16" (a: f16, b: f16, sum: f16) -> LowHalf<f16> {
        LowHalf(multiply_then_add(a, b, sum))
    }
    "v_madak_f16" (a: f16, b: f16, literal: f16) -> LowHalf<f16> {
        LowHalf(multiply_then_add(a, b, literal))
    }
    "v_madmk_f16" (a: f16, literal: f16, c: f16) -> LowHalf<f16> {
        LowHalf(multiply_then_add(a, literal, c))
    }
    "v_mad_legacy_f16" (a: f16, b: f16, c: f16) -> f16 { multiply_then_add(a, b, c) }
}

operations! {
    /// One of the sources.
    CHOICE { flushes: true, settles: false, levels: of }

    "v_min_f16" (a: f16, b: f16; context) -> f16 { minimum(a, b, context.mode) }
    "v_max_f16" (a: f16, b: f16; context) -> f16 { maximum(a, b, context.mode) }
    "v_min3_f16" (a: f16, b: f16, c: f16; context) -> LowHalf<f16> {
        LowHalf(minimum(minimum(a, b, context.mode), c, context.mode))
    }
    "v_max3_f16" (a: f16, b: f16, c: f16; context) -> LowHalf<f16> {
        LowHalf(maximum(maximum(a, b, context.mode), c, context.mode))
    }
    "v_med3_f16" (a: f16, b: f16, c: f16; context) -> LowHalf<f16> {
        LowHalf(median(a, b, c, context.mode))
    }
}

operations! {
    /// Exponents as integers.
    PARTS { flushes: true, settles: false, levels: of }

    "v_frexp_exp_i16_f16" (a: f16) -> i16 {
        let wide = to_f32(a);
        let exponent = (wide.to_bits() >> 23 & 0xff) as i16 - 126;
        if wide == 0.0 || !wide.is_finite() { 0 } else { exponent }
    }
}
