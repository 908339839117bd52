//! Arithmetic that needs many instructions: divisions, roots, conversions, wide integers.

use super::at_every_level;
use flipwave_tests::{random_words, to_values};
use std::fmt::Debug;

const COUNT: usize = 256;

/// Runs a kernel on pairs of operands at every level, with `WIDTH` results per pair. Compares the `bits` of
/// the results with those of `expected`.
fn check<T, B, const WIDTH: usize>(
    kernel: &str,
    options: &[&str],
    operands: &[(T, T)],
    expected: impl Fn(T, T) -> [T; WIDTH],
    bits: impl Fn(T) -> B,
) where
    T: flipwave_tests::Element + Debug + Default,
    B: PartialEq,
{
    let (left, right): (Vec<T>, Vec<T>) = operands.iter().copied().unzip();
    at_every_level("numbers.cl", options, |mut program| {
        let results = vec![T::default(); operands.len() * WIDTH];
        let arguments = [program.input(&left), program.input(&right), program.output(&results)];
        program.launch(kernel, [operands.len() as u32, 1, 1], [64, 1, 1], &arguments);
        let results: Vec<T> = to_values(&program.outputs()[0]);
        for ((a, b), found) in operands.iter().zip(results.chunks(WIDTH)) {
            for (number, (found, expected)) in found.iter().zip(expected(*a, *b)).enumerate() {
                assert!(
                    bits(*found) == bits(expected),
                    "result {number} of {a:?} and {b:?}: {found:?}, not {expected:?}"
                );
            }
        }
    });
}

#[test]
fn wide_integer_arithmetic_matches_rust() {
    let words = random_words(2 * COUNT);
    let mut operands: Vec<(u64, u64)> = words
        .chunks(2)
        .zip(0u32..)
        // Divisors of every bit length.
        .map(|(pair, index)| (pair[0], (pair[1] >> (index % 64)).max(1)))
        .collect();
    operands[..6].copy_from_slice(&[
        (0, 1),
        (u64::MAX, 1),
        (u64::MAX, u64::MAX),
        (1 << 63, u64::MAX),
        (u64::from(u32::MAX), 1 << 32),
        (1 << 63, 3),
    ]);
    check::<u64, u64, 12>("integers", &[], &operands, integers, |word| word);
}

fn integers(a: u64, b: u64) -> [u64; 12] {
    let (c, d) = (a as i64, b as i64);
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let (low, odd) = (a as u32, b as u32 | 1);
    [
        a / b,
        a % b,
        if d == -1 { 0 } else { (c / d) as u64 },
        if d == -1 { 0 } else { (c % d) as u64 },
        a.wrapping_mul(b),
        ((u128::from(a) * u128::from(b)) >> 64) as u64,
        ((i128::from(c) * i128::from(d)) >> 64) as u64,
        pair(a.count_ones(), b.leading_zeros()),
        a.rotate_left(b as u32 & 63),
        (a << (b & 63)) ^ (b >> (a & 63)) ^ (c >> (b & 63)) as u64,
        pair(low / odd, low % odd),
        a.saturating_add(b) ^ c.saturating_sub(d) as u64,
    ]
}

/// Operands with zeros, infinities, denormals, or such results. NaN is not included, because the result of
/// `fmin` for a NaN depends on the hardware.
const SPECIAL: [(f32, f32); 12] = [
    (1.0, 3.0),
    (0.0, 5.0),
    (-0.0, 5.0),
    (f32::INFINITY, 2.0),
    (2.0, f32::NEG_INFINITY),
    (1.0e-40, 3.0),
    (1.0, 1.0e38),
    (3.0e38, 1.0e-3),
    (2.5, -2.5),
    (0.5, 1.5),
    (16_777_217.0, 8_388_609.5),
    (f32::MIN_POSITIVE, 2.0),
];

/// Special operands, and random ones of every magnitude.
fn floats<T: From<f32>>(rounded: impl Fn(f64) -> T) -> Vec<(T, T)> {
    let number = |word: u64| {
        let fraction = (word >> 12) as f64 / (1u64 << 52) as f64 + 1.0;
        let exponent = (word & 63) as i32 - 32;
        let sign = if word & 64 == 0 { 1.0 } else { -1.0 };
        rounded(sign * fraction * 2f64.powi(exponent))
    };
    let words = random_words(2 * COUNT);
    let random = words.chunks(2).map(|pair| (number(pair[0]), number(pair[1])));
    SPECIAL.into_iter().map(|(a, b)| (T::from(a), T::from(b))).chain(random).collect()
}

/// Bits of a number, equal for all NaNs.
fn single_bits(value: f32) -> u32 {
    if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() }
}

fn double_bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

#[test]
fn single_precision_matches_rust() {
    // Without this option, OpenCL allows errors of 2.5 and 3 units in the last place.
    let options = ["-cl-fp32-correctly-rounded-divide-sqrt"];
    let operands = floats(|value| value as f32);
    check::<f32, u32, 8>("singles", &options, &operands, singles, single_bits);
}

fn singles(a: f32, b: f32) -> [f32; 8] {
    [
        a / b,
        a.abs().sqrt(),
        a.mul_add(b, 1.0),
        a.min(b) + a.max(b),
        a.floor() - b.ceil(),
        a.round_ties_even() + b.trunc(),
        a as i32 as f32,
        if a < b { a.copysign(b) } else { a.abs() },
    ]
}

#[test]
fn double_precision_matches_rust() {
    check::<f64, u64, 8>("doubles", &[], &floats(|value| value), doubles, double_bits);
}

fn doubles(a: f64, b: f64) -> [f64; 8] {
    [
        a / b,
        a.abs().sqrt(),
        a.mul_add(b, 1.0),
        a - b,
        a.floor() * b.ceil(),
        a.round_ties_even() + b.trunc(),
        a as i64 as f64 + f64::from(b as f32),
        a.min(b) / a.max(b),
    ]
}
