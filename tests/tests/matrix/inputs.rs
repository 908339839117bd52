//! Input matrices.

use super::format::Format;
use super::variants::{Kind, Variant};
use flipwave_tests::random_words;

/// Distribution of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Small integers, whose floating-point sums are exact in any order. Integer formats use their full
    /// range.
    Exact,
    /// Numbers near one with random mantissas.
    Near,
    /// All kinds of numbers of a format: rows of denormals, of the smallest and the largest normal numbers,
    /// and rows with infinities and NaNs.
    Wide,
}

/// A, B and C, with indices and scales. Elements of A and B are codes of their formats.
#[derive(Clone)]
pub struct Inputs {
    /// Rows of A. A sparse A has only the stored elements.
    pub a: Vec<Vec<u64>>,
    /// Position among four of each element of a sparse A.
    pub indices: Vec<Vec<u64>>,
    /// Columns of B.
    pub b: Vec<Vec<u64>>,
    /// Rows of C, as values that C's type represents exactly.
    pub c: Vec<Vec<f64>>,
    /// Exponents of 32 elements each, by row of A and by column of B.
    pub a_scales: Vec<Vec<u64>>,
    pub b_scales: Vec<Vec<u64>>,
}

/// An endless sequence of pseudorandom numbers.
struct Random {
    words: Vec<u64>,
    next: usize,
}

impl Random {
    fn new(seed: usize) -> Random {
        Random { words: random_words(1 << 16), next: seed }
    }

    fn word(&mut self) -> u64 {
        self.next += 1;
        let place = self.next * 7919;
        let turn = (place / self.words.len()) as u32;
        self.words[place % self.words.len()].rotate_left(turn)
    }

    fn within(&mut self, low: i64, high: i64) -> i64 {
        low + ((self.word() >> 20) % (high - low + 1) as u64) as i64
    }
}

/// Number of elements that share a scale.
pub const SCALED: usize = 32;

/// Positions of two elements among four.
const PAIRS_OF_FOUR: [[u64; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];

impl Inputs {
    pub fn new(variant: &Variant, values: Values) -> Inputs {
        let random = &mut Random::new(variant.depth + 3 * variant.size);
        let depth = variant.total_depth();
        let (kept, groups) = match variant.kind {
            Kind::Sparse => (depth / 2, depth / 4),
            _ => (depth, 0),
        };
        let a = (0..variant.rows())
            .map(|row| {
                let mut codes = line(variant, values, row, true, kept, random);
                if values == Values::Wide && row % 8 == 5 {
                    add_specials(&mut codes, variant.a, 1 + row / 8 % 2, random);
                }
                codes
            })
            .collect();
        let b = (0..variant.columns())
            .map(|column| line(variant, values, column, false, depth, random))
            .collect();
        let mut pair = || PAIRS_OF_FOUR[random.within(0, 5) as usize];
        let indices =
            (0..variant.rows()).map(|_| (0..groups).flat_map(|_| pair()).collect()).collect();
        let mut inputs =
            Inputs { a, b, indices, c: Vec::new(), a_scales: Vec::new(), b_scales: Vec::new() };
        if variant.kind == Kind::Scaled {
            inputs.add_scales(variant, values, random);
        }
        inputs.c = (0..variant.rows())
            .map(|row| {
                let element = |column| inputs.before(variant, values, row, column, random);
                (0..variant.columns()).map(element).collect()
            })
            .collect();
        inputs
    }

    /// An element of C with the magnitude of a product.
    fn before(
        &self,
        variant: &Variant,
        values: Values,
        row: usize,
        column: usize,
        random: &mut Random,
    ) -> f64 {
        let Some(format) = variant.sum.format() else {
            return whole_sum(variant, row, random);
        };
        if values == Values::Exact {
            return random.within(-8, 8) as f64;
        }
        let product = variant.a.value(self.a[row][0]) * variant.b.value(self.b[column][0]);
        let exponent = if product.is_normal() { product.abs().log2() as i32 } else { 0 };
        format.value(format.with_exponent(exponent.clamp(-14, 14), random.word()))
    }

    /// Adds scales from the complete range whose products are near one.
    fn add_scales(&mut self, variant: &Variant, values: Values, random: &mut Random) {
        let blocks = variant.total_depth() / SCALED;
        let bases: Vec<i64> = (0..blocks)
            .map(|block| match (values, block % 4) {
                (Values::Wide, 1) => 2,
                (Values::Wide, 3) => 252,
                (Values::Wide, _) => random.within(2, 252),
                _ => random.within(120, 134),
            })
            .collect();
        let jitter = if values == Values::Exact { 0..=1 } else { -2..=2 };
        let mut lines = |count: usize, is_a: bool| {
            (0..count)
                .map(|line| {
                    bases
                        .iter()
                        .map(|base| {
                            let base = if is_a { *base } else { 254 - base };
                            let scale = base + random.within(*jitter.start(), *jitter.end());
                            // The scale that encodes NaN.
                            let is_nan = values == Values::Wide && is_a && line % 16 == 6;
                            if is_nan { 255 } else { scale.clamp(0, 254) as u64 }
                        })
                        .collect()
                })
                .collect()
        };
        self.a_scales = lines(variant.rows(), true);
        self.b_scales = lines(variant.columns(), false);
    }
}

/// A row of A, or a column of B.
fn line(
    variant: &Variant,
    values: Values,
    at: usize,
    is_a: bool,
    count: usize,
    random: &mut Random,
) -> Vec<u64> {
    let format = if is_a { variant.a } else { variant.b };
    (0..count).map(|_| code(variant, values, format, at, is_a, random)).collect()
}

/// Replaces `count` elements with infinities and NaNs, if the format has any.
fn add_specials(codes: &mut [u64], format: Format, count: usize, random: &mut Random) {
    let specials = format.special_codes();
    if !specials.is_empty() {
        for _ in 0..count {
            let place = random.within(0, codes.len() as i64 - 1) as usize;
            codes[place] = specials[random.within(0, specials.len() as i64 - 1) as usize];
        }
    }
}

/// An element of A or B.
fn code(
    variant: &Variant,
    values: Values,
    format: Format,
    line: usize,
    is_a: bool,
    random: &mut Random,
) -> u64 {
    if format.is_integer() {
        let word = random.word() >> 7;
        let code = word & ((1 << format.bits()) - 1);
        // Rows and columns of one sign saturate in any order of summation.
        let sign = 1 << (format.bits() - 1);
        return match (variant.saturates() && format.is_signed(), is_a && line % 2 == 1) {
            (true, false) => code & !sign,
            (true, true) => code | sign,
            (false, _) => code,
        };
    }
    match values {
        Values::Exact => {
            // Small numbers if sums have few bits.
            let most = if variant.sum.bytes() == 2 { 1 } else { 4 };
            format.code_of_integer(random.within(-most, most))
        }
        Values::Near => {
            let exponent = random.within(-2, 2) as i32;
            format.with_exponent(exponent, random.word())
        }
        Values::Wide => {
            let word = random.word();
            match (line % 8, is_a) {
                (0, _) | (4, true) => format.denormal(word),
                (1, _) => format.extreme(false, word),
                (2, true) | (3, false) => format.extreme(true, word),
                _ => format.with_exponent(random.within(-6, 6) as i32, word),
            }
        }
    }
}

/// An integer of C, which makes the sum overflow if the instruction saturates.
fn whole_sum(variant: &Variant, row: usize, random: &mut Random) -> f64 {
    // The magnitude of the sum of products.
    let near = random
        .within(0, (variant.total_depth() << (variant.a.bits() + variant.b.bits() - 2)) as i64);
    let value = match (variant.saturates(), row % 2) {
        (false, _) => random.word() as i32,
        (true, 0) => i32::MAX - near as i32,
        (true, _) => i32::MIN + near as i32,
    };
    value.into()
}
