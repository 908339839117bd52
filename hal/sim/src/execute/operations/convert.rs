//! Conversions. Conversions to integers saturate, and NaN gives zero.

use super::row::operations;
use super::sources;
use crate::execute::lane::binary16::{from_f32, to_f32};
use crate::execute::lane::{Float, Pair};
use half::f16;

operations! {
    /// Conversions to a format that represents every source.
    WIDENING { denormals: ByMode, rounds: Exact, nans: Own, levels: each_level, source: sources::DEFINED }

    "v_cvt_f64_i32" (a: i32) -> f64 { a.into() }
    "v_cvt_f64_u32" (a: u32) -> f64 { a.into() }
    "v_cvt_f32_ubyte0" (a: u32) -> f32 { (a & 0xff) as f32 }
    "v_cvt_f32_ubyte1" (a: u32) -> f32 { (a >> 8 & 0xff) as f32 }
    "v_cvt_f32_ubyte2" (a: u32) -> f32 { (a >> 16 & 0xff) as f32 }
    "v_cvt_f32_ubyte3" (a: u32) -> f32 { (a >> 24) as f32 }
    "v_cvt_off_f32_i4" (a: i32) -> f32 { (a << 28 >> 28) as f32 / 16.0 }
    "v_cvt_f32_f16" (a: f16) -> f32 {
        let wide = to_f32(a);
        if wide.is_nan() { wide.quieted() } else { wide }
    }
    "v_cvt_f64_f32" (a: f32) -> f64 {
        let bits = u64::from(a.to_bits());
        let nan = (bits >> 31) << 63 | 0x7ff8 << 48 | (bits & 0x7f_ffff) << 29;
        if a.is_nan() { f64::from_bits(nan) } else { a.into() }
    }
}

operations! {
    /// Conversions to a narrower format. Rounded by the field of the result's format (ISA manual,
    /// `V_CVT_F16_F32`: "Output rounding based on DP rounding mode").
    NARROWING { denormals: ByMode, rounds: ByMode, nans: Own, levels: each_level, source: sources::ROUNDED_ONCE }

    "v_cvt_f32_i32" (a: i32; context) -> f32 { context.round.converted(a, |a| a as f32) }
    "v_cvt_f32_u32" (a: u32; context) -> f32 { context.round.converted(a, |a| a as f32) }
    "v_cvt_f16_i16" (a: i16; context) -> f16 {
        context.round.converted(a, |a| from_f32(a.into()))
    }
    "v_cvt_f16_u16" (a: u16; context) -> f16 {
        context.round.converted(a, |a| from_f32(a.into()))
    }
    "v_cvt_f16_f32" (a: f32; context) -> f16 { context.round.converted(a, from_f32) }
    "v_cvt_f32_f64" (a: f64; context) -> f32 {
        context.round.converted(a, |a| {
            let bits = a.to_bits();
            let nan = (bits >> 63) << 31 | 0x7fc0_0000 | bits >> 29 & 0x7f_ffff;
            if a.is_nan() { f32::from_bits(nan as u32) } else { a as f32 }
        })
    }
}

operations! {
    /// Conversions to integers with the rounding that the operation's name states, regardless of
    /// MODE.
    TO_INTEGER { denormals: ByMode, rounds: Exact, nans: Own, levels: each_level, source: sources::DEFINED }

    "v_cvt_i32_f32" (a: f32) -> i32 { a as i32 }
    "v_cvt_u32_f32" (a: f32) -> u32 { a as u32 }
    "v_cvt_i32_f64" (a: f64) -> i32 { a as i32 }
    "v_cvt_u32_f64" (a: f64) -> u32 { a as u32 }
    "v_cvt_i16_f16" (a: f16) -> i16 { to_f32(a) as i16 }
    "v_cvt_u16_f16" (a: f16) -> u16 { to_f32(a) as u16 }
    "v_cvt_flr_i32_f32" (a: f32) -> i32 { a.floor() as i32 }
    // The sum is exact in double precision.
    "v_cvt_rpi_i32_f32" (a: f32) -> i32 { (f64::from(a) + 0.5).floor() as i32 }
    "v_cvt_norm_i16_f16" (a: f16) -> i16 { signed_normal(to_f32(a)) }
    "v_cvt_norm_u16_f16" (a: f16) -> u16 { unsigned_normal(to_f32(a)) }
}

operations! {
    /// Conversions of two numbers into one word, rounded to nearest even or as the name states.
    PACKING { denormals: ByMode, rounds: Fixed, nans: Own, levels: each_level, source: sources::DEFINED }

    "v_cvt_pkrtz_f16_f32" (a: f32, b: f32) -> Pair<f16> { Pair(truncated(a), truncated(b)) }
    "v_cvt_pknorm_i16_f32" (a: f32, b: f32) -> Pair<i16> {
        Pair(signed_normal(a), signed_normal(b))
    }
    "v_cvt_pknorm_u16_f32" (a: f32, b: f32) -> Pair<u16> {
        Pair(unsigned_normal(a), unsigned_normal(b))
    }
    "v_cvt_pknorm_i16_f16" (a: f16, b: f16) -> Pair<i16> {
        Pair(signed_normal(to_f32(a)), signed_normal(to_f32(b)))
    }
    "v_cvt_pknorm_u16_f16" (a: f16, b: f16) -> Pair<u16> {
        Pair(unsigned_normal(to_f32(a)), unsigned_normal(to_f32(b)))
    }
    "v_cvt_pk_i16_f32" (a: f32, b: f32) -> Pair<i16> { Pair(a as i16, b as i16) }
    "v_cvt_pk_u16_f32" (a: f32, b: f32) -> Pair<u16> { Pair(a as u16, b as u16) }
    "v_cvt_pk_u16_u32" (a: u32, b: u32) -> Pair<u16> {
        let saturated = |word: u32| word.min(0xffff) as u16;
        Pair(saturated(a), saturated(b))
    }
    "v_cvt_pk_i16_i32" (a: i32, b: i32) -> Pair<i16> {
        let saturated = |word: i32| word.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        Pair(saturated(a), saturated(b))
    }
    "v_pack_b32_f16" (a: f16, b: f16) -> Pair<f16> {
        let quiet = |half: f16| if half.is_nan() { half.quieted() } else { half };
        Pair(quiet(a), quiet(b))
    }
}

operations! {
    /// Conversions of a number into a byte of a word. The manual does not say how they round;
    /// CLRX's description of the instruction set says that MODE decides.
    BYTES {
        denormals: ByMode, rounds: SingleFirst, nans: Own, levels: plain_only,
        unsettled: "MODE decides how it rounds"
    }

    "v_cvt_pk_u8_f32" (a: f32, byte: u32, rest: u32; context) -> u32 {
        with_byte(context.round.integral(a), byte, rest)
    }
    "v_cvt_pkaccum_u8_f32" (a: f32, byte: u32, old: u32; context) -> u32 {
        with_byte(context.round.integral(a), byte, old)
    }
}

/// A number from -1 to 1 as a multiple of 1/32767, rounded to nearest even. The product is exact in
/// double precision for half-precision numbers.
#[inline(always)]
fn signed_normal(value: f32) -> i16 {
    (f64::from(value).clamp(-1.0, 1.0) * 32767.0).round_ties_even() as i16
}

/// A number from 0 to 1 as a multiple of 1/65535, rounded to nearest even.
#[inline(always)]
fn unsigned_normal(value: f32) -> u16 {
    (f64::from(value).clamp(0.0, 1.0) * 65535.0).round_ties_even() as u16
}

/// Replaces a byte of `rest` by `value`, an integral number.
#[inline(always)]
fn with_byte(value: f32, byte: u32, rest: u32) -> u32 {
    let shift = 8 * (byte & 3);
    rest & !(0xff << shift) | u32::from(value as u8) << shift
}

/// Converts to half precision, rounded towards zero in any mode. Finite numbers stay finite.
#[inline(always)]
fn truncated(value: f32) -> f16 {
    let nearest = from_f32(value);
    let away = to_f32(nearest).abs() > value.abs();
    f16::from_bits(nearest.to_bits() - u16::from(away))
}
