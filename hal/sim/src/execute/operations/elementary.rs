//! Exponentials, logarithms, sines and cosines in double precision, for results of single precision
//! and less: branch-free polynomials, which compilers vectorise over lanes. They use only unfused
//! IEEE operations, and so have the same bits on every host. The error is a few units in the last
//! place of double precision: of a hundred million numbers of single precision less than one is
//! rounded to the other neighbour, as with any function that is not correctly rounded.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

/// Evaluates a polynomial; the factors start with that of the power of zero.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, factors: &[f64; N]) -> f64 {
    factors.iter().rev().fold(0.0, |sum, factor| sum * x + factor)
}

/// Taylor series of the power of two: ln(2)^k / k!. The remainder is below 2^-55 for arguments up
/// to one half.
pub const EXPONENTIAL: [f64; 14] = {
    let mut factors = [1.0; 14];
    let mut k = 1;
    while k < factors.len() {
        factors[k] = factors[k - 1] * LN_2 / k as f64;
        k += 1;
    }
    factors
};

/// 2^52 + 2^51: adding a number to it rounds to an integer, which is then in the low bits.
pub const WHOLE: f64 = 6_755_399_441_055_744.0;

/// Above this exponent, single precision overflows or underflows.
pub const GREATEST_EXPONENT: f64 = 500.0;

/// Two to the power of `x`, for results of single precision and less; clamped at 2^500.
#[inline(always)]
pub(super) fn exp2(x: f64) -> f64 {
    let x = x.clamp(-GREATEST_EXPONENT, GREATEST_EXPONENT);
    let shifted = x + WHOLE;
    let power = polynomial(x - (shifted - WHOLE), &EXPONENTIAL);
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    power * scale
}

/// Series of the logarithm to base 2 of (1 + s) / (1 - s), divided by s, in powers of s squared: 2
/// / (ln(2) (2 k + 1)). The remainder is below 2^-56 for s up to 0.172.
pub const LOGARITHM: [f64; 11] = {
    let mut factors = [0.0; 11];
    let mut k = 0;
    while k < factors.len() {
        factors[k] = 2.0 / LN_2 / (2 * k + 1) as f64;
        k += 1;
    }
    factors
};

/// The logarithm to base 2 of a number that is not denormal.
#[inline(always)]
pub(super) fn log2(x: f64) -> f64 {
    // The exponent of x divided by the root of one half, so that the mantissa is about one.
    let exponent = x.to_bits().wrapping_sub(FRAC_1_SQRT_2.to_bits()) & 0xfff << 52;
    let rest = f64::from_bits(x.to_bits().wrapping_sub(exponent));
    let s = (rest - 1.0) / (rest + 1.0);
    // Avoids a conversion of 64-bit numbers, which not all hosts can vectorise.
    let whole = f64::from_bits((exponent >> 52) + WHOLE.to_bits()) - WHOLE;
    let whole = if whole > 2048.0 { whole - 4096.0 } else { whole };
    let logarithm = whole + s * polynomial(s * s, &LOGARITHM);
    let logarithm = if x < f64::INFINITY { logarithm } else { x };
    let logarithm = if x < 0.0 { f64::NAN } else { logarithm };
    if x == 0.0 { f64::NEG_INFINITY } else { logarithm }
}

/// Series of sine divided by `x`, and of cosine, in powers of `x` squared. The remainder is below
/// 2^-57 for an eighth of a turn.
pub const SINE: [f64; 10] = alternating_reciprocals_of_factorials(1);
pub const COSINE: [f64; 10] = alternating_reciprocals_of_factorials(0);

/// 1 / n!, -1 / (n + 2)!, 1 / (n + 4)! ... for n of zero or one.
const fn alternating_reciprocals_of_factorials(n: usize) -> [f64; 10] {
    let mut factors = [1.0; 10];
    let mut k = 1;
    while k < factors.len() {
        let last = n + 2 * k;
        factors[k] = -factors[k - 1] / (last * (last - 1)) as f64;
        k += 1;
    }
    factors
}

/// The sine of an angle of at most an eighth of a turn, in radians.
#[inline(always)]
pub(super) fn sine_of_part(x: f64) -> f64 {
    x * polynomial(x * x, &SINE)
}

/// The cosine of an angle of at most an eighth of a turn, in radians.
#[inline(always)]
pub(super) fn cosine_of_part(x: f64) -> f64 {
    polynomial(x * x, &COSINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units in the last place of double precision between two results.
    fn distance(a: f64, b: f64) -> u64 {
        if a == b || a.is_nan() && b.is_nan() { 0 } else { a.to_bits().abs_diff(b.to_bits()) }
    }

    /// Every `step`-th single-precision number.
    fn some(step: usize) -> impl Iterator<Item = f64> {
        (0..=u32::MAX).step_by(step).map(|bits| f32::from_bits(bits).into())
    }

    #[test]
    fn powers_and_logarithms_are_within_a_few_units_of_libm() {
        for x in some(9973).filter(|x: &f64| x.is_nan() || x.abs() <= 150.0) {
            assert!(distance(exp2(x), libm::exp2(x)) <= 4, "2^{x}");
        }
        for x in some(9973) {
            assert!(distance(log2(x), libm::log2(x)) <= 4, "log2 {x}");
        }
        for x in [f64::INFINITY, f64::NEG_INFINITY, 1e4, -1e4, 0.0, -0.0] {
            assert_eq!(exp2(x) as f32, libm::exp2(x) as f32, "2^{x}");
            assert_eq!(log2(x).to_bits() << 1, libm::log2(x).to_bits() << 1, "log2 {x}");
        }
    }

    #[test]
    fn sines_and_cosines_are_within_a_few_units_of_libm() {
        for x in (-100_000..=100_000).map(|place| f64::from(place) * 7.8539e-6) {
            assert!(distance(sine_of_part(x), libm::sin(x)) <= 2, "sine of {x}");
            assert!(distance(cosine_of_part(x), libm::cos(x)) <= 2, "cosine of {x}");
        }
    }

    /// Results of single precision, rounded as the operations do.
    #[test]
    #[ignore = "long: all numbers of single precision"]
    fn single_precision_results_equal_libm_except_for_a_few_numbers() {
        type Function = fn(f64) -> f64;
        let functions: [[Function; 2]; 2] = [[exp2, libm::exp2], [log2, libm::log2]];
        let mut differing = [0; 2];
        for x in some(1) {
            for (count, [ours, expected]) in differing.iter_mut().zip(functions) {
                let [ours, expected] = [ours(x) as f32, expected(x) as f32];
                *count += u32::from(ours != expected && !(ours.is_nan() && expected.is_nan()));
            }
        }
        assert!(differing.iter().all(|count| *count < 40), "{differing:?}");
    }
}
