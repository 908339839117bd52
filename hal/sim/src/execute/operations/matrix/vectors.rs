//! Sums of [`super::fused`], 16 at a time, with the same results from 32-bit integers and double
//! precision, which the host's vectors support. No part of a sum of finite products needs more:
//! products have 26 bits, 16 of them 30, and the operands of the addition to the sum so far fewer
//! than 53.

use super::fused::{Factor, PLACES, Rule, sum};
use super::lines::Lines;
use crate::execute::lane::small_float::power;

/// Sums computed at a time.
pub const WIDTH: usize = 16;

/// A value for each sum.
pub type Vector<T> = [T; WIDTH];

/// An element of a row of A, and the product that it belongs to.
#[derive(Clone, Copy, Default)]
pub struct Term {
    /// Same as [`Factor::significand`].
    pub significand: i32,
    /// Same as [`Factor::exponent`].
    pub exponent: i32,
    /// Number of the product.
    pub product: u32,
}

/// Returns `true` if all products of elements with these greatest exponents are representable in
/// single precision.
#[inline(always)]
pub fn are_tame(left: i32, right: i32) -> bool {
    left + right <= 125
}

/// Multiplies terms with columns of B from `column` on, and adds them to sums.
#[inline(always)]
pub fn add_integers<const ROOM: usize>(
    terms: &[Term],
    right: &Lines<ROOM>,
    column: usize,
    sums: &mut Vector<u32>,
) {
    for term in terms {
        let b = &right.significands[term.product as usize * right.size + column..][..WIDTH];
        for (sum, b) in sums.iter_mut().zip(b) {
            *sum = sum.wrapping_add((term.significand * b) as u32);
        }
    }
}

/// Adds products of `ROWS` rows of A with columns of B to sums in groups: each group is summed
/// exactly and rounded once with the sum so far, see [`Limits`](super::sizes::Limits). Both sides
/// store the elements of all lines for a product contiguously.
#[inline(always)]
pub fn add_together<const ROWS: usize>(
    group: usize,
    (left, row): (&[f32], usize),
    (right, column): (&[f32], usize),
    size: usize,
    sums: &mut [Vector<f32>; ROWS],
) {
    for (left, right) in left.chunks(group * size).zip(right.chunks(group * size)) {
        let mut parts = [[0.0; WIDTH]; ROWS];
        for (left, right) in left.chunks_exact(size).zip(right.chunks_exact(size)) {
            let (left, right) = (&left[row..][..ROWS], &right[column..][..WIDTH]);
            for (part, left) in parts.iter_mut().zip(left) {
                for lane in 0..WIDTH {
                    part[lane] += left * right[lane];
                }
            }
        }
        for (sum, part) in sums.iter_mut().zip(parts) {
            for lane in 0..WIDTH {
                sum[lane] += part[lane];
            }
        }
    }
}

/// Computes [`sum`] for terms that are tame: see [`are_tame`].
#[inline(always)]
pub fn add_fused<const ROOM: usize>(
    rule: Rule,
    terms: &[Term],
    right: &Lines<ROOM>,
    column: usize,
    scales: &Vector<i32>,
    sums: &mut Vector<f32>,
) {
    let before = *sums;
    let sides = if rule == Rule::EvenAndOdd { 2 } else { 1 };
    let (mut greatest, mut parts) = ([[i32::MIN / 2; WIDTH]; 2], [[0; WIDTH]; 2]);
    for side in 0..sides {
        let terms = || terms[side..].iter().step_by(sides);
        // Exponents and significands of the elements that a term is multiplied with.
        let met = |term: &Term| -> [&Vector<i32>; 2] {
            let first = term.product as usize * right.size + column;
            [&right.exponents, &right.significands].map(|values| &values[first..].as_chunks().0[0])
        };
        let mut top = [i32::MIN / 2; WIDTH];
        for term in terms() {
            let [exponents, _] = met(term);
            top = std::array::from_fn(|lane| top[lane].max(term.exponent + exponents[lane]));
        }
        let mut part = [0; WIDTH];
        for term in terms() {
            let [exponents, significands] = met(term);
            let significand = term.significand << (24 - 2 * PLACES);
            part = std::array::from_fn(|lane| {
                let digits = significand * significands[lane];
                let distance = (top[lane] - (term.exponent + exponents[lane])).min(31);
                // A division by a power of two that rounds towards zero.
                let below_zero = digits >> 31 & ((1u32 << distance) - 1) as i32;
                part[lane] + ((digits + below_zero) >> distance)
            });
        }
        (greatest[side], parts[side]) = (top, part);
    }
    for lane in 0..WIDTH {
        let bits = before[lane].to_bits();
        let field = (bits >> 23 & 0xff) as i32;
        let magnitude = (bits & 0x7f_ffff) as i32 | if field == 0 { 0 } else { 1 << 23 };
        let significand = if bits >> 31 != 0 { -magnitude } else { magnitude };
        let exponent = field.max(1) - 127;
        let (part, of_products, has_all) = match rule {
            Rule::Together => (parts[0][lane], greatest[0][lane] + scales[lane], true),
            Rule::EvenAndOdd => {
                let [even, odd] = [greatest[0][lane], greatest[1][lane]];
                let top = even.max(odd);
                let part = (parts[0][lane] >> (top - even).min(31))
                    + (parts[1][lane] >> (top - odd).min(31));
                let top = top + scales[lane];
                (part, top, exponent >= top - 25)
            }
        };
        let top = of_products.max(exponent);
        let third = (significand << 1) >> (top - exponent).min(31);
        let third = if has_all { f64::from(third) * 128.0 } else { 0.0 };
        let part = (f64::from(part) * power(7 - (top - of_products))).floor();
        sums[lane] = ((part + third) * power(top - 31)) as f32;
    }
    if before.iter().fold(true, |are_finite, sum| are_finite & sum.is_finite()) {
        return;
    }
    for lane in 0..WIDTH {
        if !before[lane].is_finite() {
            let factors = terms.iter().map(|term| {
                let a = Factor::finite(term.significand, term.exponent);
                (a, right.factor(column + lane, term.product as usize))
            });
            sums[lane] = sum(rule, factors, scales[lane], before[lane]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::wide::MOST_ELEMENTS;
    use super::*;
    use crate::execute::lane::small_float::SmallFloat;
    use crate::tests::operations::Random;
    use flipwave_isa::Float8;

    /// A random finite number, including zeros, denormals and distant exponents.
    fn element(format: SmallFloat, random: &mut Random) -> Factor {
        loop {
            let bits = match random.next() % 8 {
                0 => 0,
                1 => random.next() as u32 & 3,
                _ => random.next() as u32 & ((1 << format.bits) - 1),
            };
            let factor = Factor::of(format, bits);
            // Keeps bfloat16 tame.
            if factor.value.is_finite() && factor.exponent <= 60 {
                return factor;
            }
        }
    }

    fn before(random: &mut Random) -> f32 {
        let bits = random.next() as u32;
        match random.next() % 12 {
            0 => 0.0,
            1 => -0.0,
            2 => f32::INFINITY,
            3 => f32::NAN,
            // Denormals, arbitrary numbers, and numbers around one.
            4 => f32::from_bits(bits & 0x7f_ffff),
            5..8 => f32::from_bits(bits),
            _ => bits as i32 as f32 / (1 << 29) as f32,
        }
    }

    #[test]
    fn vectorised_sums_equal_scalar_sums() {
        let mut random = Random(17);
        let formats = [
            SmallFloat::F16,
            SmallFloat::BF16,
            SmallFloat::fp8(Float8::Ocp),
            SmallFloat::bf8(Float8::Fnuz),
            SmallFloat::FP4,
        ];
        for round in 0..4_000 {
            let (a, b) = (formats[round % 5], formats[round / 5 % 5]);
            let rule = if round % 2 == 0 { Rule::Together } else { Rule::EvenAndOdd };
            let group = [4, 8, 16][round % 3];
            let mut right = Lines::<MOST_ELEMENTS> {
                size: WIDTH,
                significands: [0; MOST_ELEMENTS],
                exponents: [0; MOST_ELEMENTS],
                greatest: 0,
                least: 0,
            };
            let mut columns = [[Factor::default(); WIDTH]; 16];
            for (product, column) in columns[..group].iter_mut().enumerate() {
                for (lane, factor) in column.iter_mut().enumerate() {
                    *factor = element(b, &mut random);
                    right.significands[product * WIDTH + lane] = factor.significand;
                    right.exponents[product * WIDTH + lane] = factor.exponent;
                }
            }
            let left: Vec<Factor> = (0..group).map(|_| element(a, &mut random)).collect();
            let term = |(product, factor): (usize, &Factor)| Term {
                significand: factor.significand,
                exponent: factor.exponent,
                product: product as u32,
            };
            let terms: Vec<Term> = left.iter().enumerate().map(term).collect();
            let scales: Vector<i32> = std::array::from_fn(|_| (random.next() % 40) as i32 - 20);
            let initial: Vector<f32> = std::array::from_fn(|_| before(&mut random));
            let mut sums = initial;
            add_fused(rule, &terms, &right, 0, &scales, &mut sums);
            for lane in 0..WIDTH {
                let factors = left.iter().zip(&columns).map(|(a, column)| (*a, column[lane]));
                let expected = sum(rule, factors, scales[lane], initial[lane]);
                assert_eq!(
                    sums[lane].to_bits(),
                    expected.to_bits(),
                    "{a:?} {b:?} {rule:?} {group} {:?}",
                    initial[lane]
                );
            }
        }
    }
}
