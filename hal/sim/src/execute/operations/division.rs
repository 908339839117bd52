//! The steps of a correctly rounded division, and the argument reduction of trigonometry.
//!
//! A compiler divides by scaling numerator and denominator (`v_div_scale`) so that a Newton
//! iteration neither overflows nor loses bits, scaling back in the last step (`v_div_fmas`), and
//! inserting the special cases that the iteration cannot produce (`v_div_fixup`).

use super::row::operations;
use super::sources;
use crate::execute::lane::LowHalf;
use crate::execute::lane::binary16::sum_to_odd;
use crate::execute::lane::rounding::{ByMode, Number, Rounder};
use half::f16;

operations! {
    /// Scales the first source, which is either the denominator (second source) or the numerator
    /// (third). The mask is set if the quotient must be scaled back.
    SCALE { denormals: ByMode, rounds: ByMode, nans: Own, levels: each_level, source: sources::STEPS }

    "v_div_scale_f32" (value: f32, denominator: f32, numerator: f32; context) -> (f32, bool) {
        scale(context.round, value, denominator, numerator)
    }
    "v_div_scale_f64" (value: f64, denominator: f64, numerator: f64; context) -> (f64, bool) {
        scale(context.round, value, denominator, numerator)
    }
}

operations! {
    /// Fused multiply-add; if the mask is set, the quotient is scaled back, with a single rounding.
    /// "Input denormals are not flushed but output flushing is allowed" (ISA manual,
    /// `V_DIV_FMAS_F32`).
    FMAS { denormals: ResultsByMode, rounds: ByMode, nans: Settled, levels: each_level, source: sources::STEPS }

    "v_div_fmas_f32" (a: f32, b: f32, c: f32, scaled: bool; context) -> f32 {
        let exponent = if scaled { scale_back(c) } else { 0 };
        context.round.fused_and_scaled(a, b, c, exponent, || {
            let odd = sum_to_odd(f64::from(a) * f64::from(b), f64::from(c));
            if scaled { (odd * power::<f64>(exponent)) as f32 } else { a.mul_add(b, c) }
        })
    }
    "v_div_fmas_f64" (a: f64, b: f64, c: f64, scaled: bool; context) -> f64 {
        let exponent = if scaled { scale_back(c) } else { 0 };
        context.round.fused_and_scaled(a, b, c, exponent, || {
            let scale: f64 = power(exponent);
            let rounded = a.mul_add(b, c) * scale;
            // Multiplication by a power of two is exact, except for results outside the normal
            // range.
            let normal = (rounded.abs() > f64::MIN_POSITIVE) & (rounded.abs() < f64::INFINITY);
            if scaled & !normal {
                ByMode(context.mode).fused_and_scaled(a, b, c, exponent, || rounded)
            } else {
                rounded
            }
        })
    }
}

operations! {
    /// The quotient (first source), with its sign and its special cases.
    FIXUP { denormals: ByMode, rounds: ByMode, nans: Own, levels: each_level, source: sources::STEPS }

    "v_div_fixup_f32" (quotient: f32, denominator: f32, numerator: f32; context) -> f32 {
        fixup(context.round, quotient, denominator, numerator)
    }
    "v_div_fixup_f64" (quotient: f64, denominator: f64, numerator: f64; context) -> f64 {
        fixup(context.round, quotient, denominator, numerator)
    }
    "v_div_fixup_f16" (quotient: f16, denominator: f16, numerator: f16; context)
        -> LowHalf<f16> {
        LowHalf(fixup(context.round, quotient, denominator, numerator))
    }
    "v_div_fixup_legacy_f16" (quotient: f16, denominator: f16, numerator: f16; context) -> f16 {
        fixup(context.round, quotient, denominator, numerator)
    }
}

operations! {
    /// 53 bits of 2/pi, for reducing a large argument.
    TRIGONOMETRY { denormals: Kept, rounds: Exact, nans: Own, levels: plain_only, source: sources::DEFINED }

    "v_trig_preop_f64" (a: f64, segment: u32) -> f64 { two_over_pi_bits(a, segment) }
}

/// Format parameters of the division steps.
trait Divided: Number {
    /// Bits of the mantissa.
    const MANTISSA: u32;
    /// Exponent of infinity, biased.
    const TOP: i32;
    /// Exponent of the scale factor.
    const SCALE: i32;
    /// Exponent distance between numerator and denominator from which the quotient overflows, or
    /// nearly does.
    const FAR: i32;
    /// Exponent distance below which quotients round to zero.
    const UNDERFLOW: i32;

    /// Bits of the number.
    fn bits(self) -> u64;
    /// Returns `true` if the rounded reciprocal is denormal, for finite numbers other than zero.
    fn reciprocal_is_denormal(self) -> bool;

    /// The biased exponent.
    fn exponent(self) -> i32 {
        (self.bits() >> Self::MANTISSA) as i32 & Self::TOP
    }

    /// Bits without the sign.
    fn magnitude(self) -> u64 {
        self.bits() & !Self::SIGN
    }

    /// Returns `true` for infinities.
    fn infinite(self) -> bool {
        self.magnitude() == Self::infinity()
    }

    /// The bits of plus infinity.
    fn infinity() -> u64 {
        (Self::TOP as u64) << Self::MANTISSA
    }
}

impl Divided for f32 {
    const MANTISSA: u32 = 23;
    const TOP: i32 = 0xff;
    const SCALE: i32 = 64;
    const FAR: i32 = 96;
    const UNDERFLOW: i32 = -150;
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
    fn reciprocal_is_denormal(self) -> bool {
        (1.0 / self).is_subnormal()
    }
}

impl Divided for f64 {
    const MANTISSA: u32 = 52;
    const TOP: i32 = 0x7ff;
    const SCALE: i32 = 128;
    const FAR: i32 = 768;
    const UNDERFLOW: i32 = -1075;
    fn bits(self) -> u64 {
        self.to_bits()
    }
    fn reciprocal_is_denormal(self) -> bool {
        (1.0 / self).is_subnormal()
    }
}

impl Divided for f16 {
    const MANTISSA: u32 = 10;
    const TOP: i32 = 0x1f;
    const SCALE: i32 = 0;
    const FAR: i32 = i32::MAX;
    // Quotients are computed in single precision, so none needs special treatment for its size.
    const UNDERFLOW: i32 = i32::MIN;
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
    fn reciprocal_is_denormal(self) -> bool {
        false
    }
}

/// ISA manual, `V_DIV_SCALE_F32` and `V_DIV_SCALE_F64`, with three corrections from the behaviour
/// of RDNA 3 (tinygrad's `test/amd/hw/test_vop3.py`, tests of single instructions that also run on
/// hardware):
///
/// - If numerator or denominator is zero, the mask is set; the manual leaves it clear. The result
///   is a NaN, and `v_div_fixup` ignores the quotient.
/// - The smallest normal number divided by one is scaled up, and the mask set: this quotient is not
///   denormal, but numbers with these exponents have quotients that are. So exponents decide,
///   without a division. (The test's author concludes that every small numerator sets the mask; but
///   then quotients that need no scaling would be scaled back.)
/// - A denormal denominator gives a NaN and sets the mask, as a zero does. These tests run with
///   denormals of single precision flushed, the assembler's default (AMDGPUUsage,
///   `.amdhsa_float_denorm_mode_32`); so denormal sources are zeros if MODE flushes them. If it
///   does not, a NaN would corrupt the quotients of denormals.
///
/// If both the reciprocal of the denominator and the quotient are denormal, the manual scales the
/// denominator up, which would overflow; it is scaled down here, as in the case where only the
/// reciprocal is denormal.
fn scale<T: Divided>(round: impl Rounder, value: T, denominator: T, numerator: T) -> (T, bool) {
    let is_denominator = value.bits() == denominator.bits();
    let is_numerator = value.bits() == numerator.bits();
    let scaled = |exponent: i32| round.scaled(value, exponent);
    let only = |chosen: bool, exponent: i32| if chosen { scaled(exponent) } else { value };
    if numerator.magnitude() == 0 || denominator.magnitude() == 0 {
        return (T::of_bits(T::DEFAULT_NAN), true);
    }
    let distance = numerator.exponent() - denominator.exponent();
    let reciprocal_denormal = denominator.reciprocal_is_denormal();
    // The exponent of the smallest normal number, and all below; a quotient by infinity is zero.
    let quotient_denormal = distance <= 1 - T::TOP / 2 && denominator.exponent() < T::TOP;
    if distance >= T::FAR {
        (only(is_denominator, T::SCALE), true)
    } else if denominator.denormal() {
        (scaled(T::SCALE), false)
    } else if reciprocal_denormal && quotient_denormal {
        (only(is_denominator, -T::SCALE), true)
    } else if reciprocal_denormal {
        (scaled(-T::SCALE), false)
    } else if quotient_denormal {
        (only(is_numerator, T::SCALE), true)
    } else if numerator.exponent() <= T::MANTISSA as i32 {
        (scaled(T::SCALE), false)
    } else {
        (value, false)
    }
}

/// Exponent that undoes the scaling of a quotient: scaled quotients of at least one were scaled
/// down to avoid overflow, the others up to avoid denormals. (The manual has one factor for both,
/// which undoes neither.)
#[inline(always)]
fn scale_back<T: Divided>(quotient: T) -> i32 {
    if quotient.exponent() > T::TOP / 2 { T::SCALE } else { -T::SCALE }
}

/// A power of two.
#[inline(always)]
fn power<T: Divided>(exponent: i32) -> T {
    T::of_bits(((T::TOP / 2 + exponent) as u64) << T::MANTISSA)
}

/// ISA manual, `V_DIV_FIXUP_F32`, `V_DIV_FIXUP_F64` and `V_DIV_FIXUP_F16`. A quotient that is a NaN
/// although numerator and denominator are finite indicates an overflow; otherwise a division like
/// 1e38 / 1e-38 would not be infinite. Overflow and underflow results are those of rounding a
/// number that is too great or too small.
fn fixup<T: Divided>(round: impl Rounder, quotient: T, denominator: T, numerator: T) -> T {
    let sign = (numerator.bits() ^ denominator.bits()) & T::SIGN;
    let signed = |magnitude: u64| T::of_bits(sign | magnitude);
    let signed_number = |number: T| if sign == 0 { number } else { number.negated() };
    let invalid = || T::of_bits(T::SIGN | T::DEFAULT_NAN);
    if numerator.nan() {
        numerator.quieted()
    } else if denominator.nan() {
        denominator.quieted()
    } else if numerator.magnitude() == 0 && denominator.magnitude() == 0
        || numerator.infinite() && denominator.infinite()
    {
        invalid()
    } else if denominator.magnitude() == 0 || numerator.infinite() {
        signed(T::infinity())
    } else if denominator.infinite() || numerator.magnitude() == 0 {
        signed(0)
    } else if numerator.exponent() - denominator.exponent() < T::UNDERFLOW {
        round.scaled(signed_number(T::LEAST), -2)
    } else if quotient.nan() {
        // The scaled iteration overflowed because the quotient is infinite.
        round.scaled(signed_number(T::GREATEST), 1)
    } else {
        signed(quotient.magnitude())
    }
}

/// The binary digits of 2/pi after the point, highest first.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// ISA manual, `V_TRIG_PREOP_F64`: the 53 digits of 2/pi that are relevant for the argument's
/// exponent, `segment` times 53 digits further.
fn two_over_pi_bits(argument: f64, segment: u32) -> f64 {
    let exponent = argument.exponent();
    let skipped = (segment & 31) as i32 * 53 + (exponent - 1077).max(0);
    let digit = |at: i32| {
        let word = TWO_OVER_PI.get(at as usize / 64).copied().unwrap_or(0);
        if at > 1200 { 0 } else { word >> (63 - at % 64) & 1 }
    };
    let digits = (skipped..skipped + 53).fold(0, |digits, at| digits << 1 | digit(at));
    let scale = -53 - skipped + if exponent >= 1968 { 128 } else { 0 };
    libm::scalbn(digits as f64, scale)
}
