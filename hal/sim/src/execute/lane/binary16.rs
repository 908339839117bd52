//! Half-precision arithmetic using wider formats, written without branches so that compilers
//! vectorise it.
//!
//! A sum, product, quotient or square root of two half-precision numbers that is rounded first to
//! single precision and then to half is correctly rounded, since 24 >= 2 * 11 + 2 (Figueroa, "When
//! is double rounding innocuous?", 1995). A fused multiply-add is not; it uses double precision
//! rounded to odd.

use half::f16;

/// Converts to single precision; NaNs keep their payload and stay signalling.
#[inline(always)]
pub(crate) fn to_f32(value: f16) -> f32 {
    let bits = u32::from(value.to_bits());
    // The exponent's bias differs by 112; a multiplication corrects it for denormals as well.
    let scaled = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
    let special = if bits & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(scaled.to_bits() | special | (bits & 0x8000) << 16)
}

/// Rounds to nearest even; a NaN becomes quiet and keeps the high bits of its payload.
#[inline(always)]
pub(crate) fn from_f32(value: f32) -> f16 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let normal =
        (magnitude.wrapping_add(0xfff + (magnitude >> 13 & 1)).wrapping_sub(112 << 23)) >> 13;
    // Adding one half aligns the last place of a half-precision denormal with that of the sum.
    let denormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let finite = if magnitude < 113 << 23 { denormal } else { normal };
    let result = if magnitude > 0x7f80_0000 {
        0x7e00 | (magnitude >> 13 & 0x3ff)
    } else if magnitude >= 0x477f_f000 {
        0x7c00
    } else {
        finite
    };
    f16::from_bits(result as u16 | (bits >> 16) as u16 & 0x8000)
}

/// Rounds to nearest even; NaN becomes the default NaN.
#[inline(always)]
pub(crate) fn from_f64(value: f64) -> f16 {
    let bits = value.to_bits();
    let magnitude = bits & (u64::MAX >> 1);
    let half_place = (1u64 << 41) - 1 + (magnitude >> 42 & 1);
    let normal = magnitude.wrapping_add(half_place).wrapping_sub(1008 << 52) >> 42;
    let aligned = f64::from_bits((1023 + 28) << 52);
    let denormal = (f64::from_bits(magnitude) + aligned).to_bits().wrapping_sub(aligned.to_bits());
    let finite = if magnitude < 1009 << 52 { denormal } else { normal };
    let result = if value.is_nan() {
        0x7e00
    } else if f64::from_bits(magnitude) >= 65520.0 {
        0x7c00
    } else {
        finite
    };
    f16::from_bits(result as u16 | (bits >> 48) as u16 & 0x8000)
}

/// Converts to double precision.
#[inline(always)]
pub(crate) fn to_f64(value: f16) -> f64 {
    f64::from(to_f32(value))
}

/// `a + b`, rounded once.
#[inline(always)]
pub(crate) fn add(a: f16, b: f16) -> f16 {
    from_f32(to_f32(a) + to_f32(b))
}

/// `a * b`, rounded once.
#[inline(always)]
pub(crate) fn multiply(a: f16, b: f16) -> f16 {
    from_f32(to_f32(a) * to_f32(b))
}

/// `a * b + c`, rounded once.
#[inline(always)]
pub(crate) fn multiply_add(a: f16, b: f16, c: f16) -> f16 {
    from_f64(sum_to_odd(to_f64(a) * to_f64(b), to_f64(c)))
}

/// Replaces a denormal by zero with its sign.
#[inline(always)]
pub(crate) fn flush(value: f16) -> f16 {
    let bits = value.to_bits();
    f16::from_bits(if bits & 0x7c00 == 0 { bits & 0x8000 } else { bits })
}

/// `a + b` rounded to odd: an inexact sum becomes the neighbour whose last bit is set. A later
/// rounding to fewer bits can then tell on which side of a tie the sum lies.
#[inline(always)]
pub(crate) fn sum_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // Knuth's two-sum: sum + error is exactly a + b.
    let b_part = sum - a;
    let error = (a - (sum - b_part)) + (b - b_part);
    let bits = sum.to_bits();
    let towards_zero = (error < 0.0) != (sum < 0.0);
    let neighbour = if towards_zero { bits.wrapping_sub(1) } else { bits.wrapping_add(1) };
    // An infinite or NaN sum has a NaN error, which compares false.
    let inexact = (error < 0.0) | (error > 0.0);
    f64::from_bits(if inexact & (bits & 1 == 0) { neighbour } else { bits })
}
