//! Rows of A and columns of B for the host's vectors.

use super::fused::{Factor, PLACES, ZERO_EXPONENT};
use super::registers::row;
use super::vectors::{Term, Vector, WIDTH};
use super::wide::{Format, MOST_WORDS};
use crate::execute::lane::small_float::SmallFloat;
use crate::instruction::Op;
use crate::wave::{LANES, Row, Wave};

/// Exponent of an element that is not finite, so great that no product with it appears
/// representable in single precision.
const NOT_FINITE: i32 = 1 << 16;

/// Elements of the lines, which are rows of A or columns of B: those of all lines for the first
/// product, then those for the second. There is room for `ROOM` elements.
pub struct Lines<const ROOM: usize> {
    /// Number of lines.
    pub size: usize,
    /// Same as [`Factor::significand`].
    pub significands: [i32; ROOM],
    /// Same as [`Factor::exponent`].
    pub exponents: [i32; ROOM],
    /// Greatest exponent.
    pub greatest: i32,
    /// Least exponent of elements that are not zero.
    pub least: i32,
}

impl<const ROOM: usize> Lines<ROOM> {
    /// Reads a source; `from` maps a lane to the lane whose elements it has.
    #[inline(always)]
    pub fn read(
        wave: &Wave,
        op: &Op,
        source: usize,
        format: Format,
        size: usize,
        depth: usize,
        from: impl Fn(usize) -> usize,
    ) -> Lines<ROOM> {
        let each = depth * size / LANES;
        let words = words(wave, op, source, each * format.bits(), from);
        let mut lines = Lines {
            size,
            significands: [0; ROOM],
            exponents: [0; ROOM],
            greatest: ZERO_EXPONENT,
            least: NOT_FINITE,
        };
        match format {
            Format::Small(small_format) => {
                lines.fill(&words, format, each, |bits| small(small_format, bits))
            }
            Format::Xf32 => lines.fill(&words, format, each, |bits| single(bits & !0x1fff)),
            Format::Byte => lines.fill(&words, format, each, |bits| (i32::from(bits as i8), 0)),
        }
        lines
    }

    #[inline(always)]
    fn fill(
        &mut self,
        words: &[Row; MOST_WORDS + 1],
        format: Format,
        each: usize,
        parts: impl Fn(u32) -> (i32, i32),
    ) {
        let (size, bits) = (self.size, format.bits());
        let groups = LANES / size;
        let mask = u32::MAX >> (32 - bits);
        let (mut greatest, mut least) = ([ZERO_EXPONENT; WIDTH], [NOT_FINITE; WIDTH]);
        for item in 0..each {
            let (word, shift) = (item * bits / 32, item * bits % 32);
            // An element of six bits may span two words.
            let high_mask = if shift + bits > 32 { mask } else { 0 };
            let (low, high) = (words[word].0.as_chunks().0, words[word + 1].0.as_chunks().0);
            for group in 0..groups {
                let first = size * format.place(item, group, groups, each);
                let significands = self.significands[first..][..size].as_chunks_mut().0;
                let exponents = self.exponents[first..][..size].as_chunks_mut().0;
                for chunk in 0..size / WIDTH {
                    let from = group * size / WIDTH + chunk;
                    let (low, high): (&Vector<u32>, &Vector<u32>) = (&low[from], &high[from]);
                    let significands: &mut Vector<i32> = &mut significands[chunk];
                    let exponents: &mut Vector<i32> = &mut exponents[chunk];
                    for lane in 0..WIDTH {
                        let high = high[lane] << ((32 - shift) % 32) & high_mask;
                        let (significand, exponent) = parts((low[lane] >> shift | high) & mask);
                        significands[lane] = significand;
                        exponents[lane] = exponent;
                        greatest[lane] = greatest[lane].max(exponent);
                        let nonzero_exponent = if significand == 0 { NOT_FINITE } else { exponent };
                        least[lane] = least[lane].min(nonzero_exponent);
                    }
                }
            }
        }
        self.greatest = greatest.into_iter().max().unwrap_or(ZERO_EXPONENT);
        self.least = least.into_iter().min().unwrap_or(NOT_FINITE);
    }

    /// Converts the first elements to numbers; returns `false` if the power of two of an exponent
    /// is not a single-precision number.
    #[inline(always)]
    pub fn values(&self, values: &mut [f32]) -> bool {
        const LEAST: i32 = 1 - 127 + PLACES as i32;
        let elements = self.significands.iter().zip(&self.exponents);
        for (value, (significand, exponent)) in values.iter_mut().zip(elements) {
            let field = (exponent.max(&LEAST) - PLACES as i32 + 127) as u32;
            *value = *significand as f32 * f32::from_bits(field << 23);
        }
        self.least >= LEAST
    }

    /// Copies a line's elements for the first products.
    #[inline(always)]
    pub fn copy_terms(&self, line: usize, terms: &mut [Term]) {
        for (product, term) in terms.iter_mut().enumerate() {
            let at = product * self.size + line;
            let (significand, exponent) = (self.significands[at], self.exponents[at]);
            *term = Term { significand, exponent, product: product as u32 };
        }
    }

    /// Returns an element, which must be finite.
    pub fn factor(&self, line: usize, product: usize) -> Factor {
        let at = product * self.size + line;
        Factor::finite(self.significands[at], self.exponents[at])
    }
}

/// Reads the words of a source that hold the given bits of each lane, padded with zeros; `from` is
/// as in [`Lines::read`].
#[inline(always)]
pub fn words(
    wave: &Wave,
    op: &Op,
    source: usize,
    bits: usize,
    from: impl Fn(usize) -> usize,
) -> [Row; MOST_WORDS + 1] {
    let mut words = [Row::ZERO; MOST_WORDS + 1];
    for (word, to) in words[..bits.div_ceil(32)].iter_mut().enumerate() {
        let row = match op.sources[source].row() {
            Some(first) => *wave.row(first.plus(word as u16)),
            None => row(wave, op.sources[source].words[word.min(1)]),
        };
        *to = Row(std::array::from_fn(|lane| row.0[from(lane)]));
    }
    words
}

/// Significand and exponent of an element of a format of 16 bits or less.
#[inline(always)]
fn small(format: SmallFloat, bits: u32) -> (i32, i32) {
    let (digits, exponent) = format.digits(bits);
    let exponent = if digits == 0 { ZERO_EXPONENT } else { exponent };
    let exponent = if format.is_finite(bits) { exponent } else { NOT_FINITE };
    (digits << (PLACES - format.mantissa), exponent)
}

/// Significand and exponent of a single-precision number whose last 13 bits are zero.
#[inline(always)]
fn single(bits: u32) -> (i32, i32) {
    let (field, fraction) = ((bits >> 23 & 0xff) as i32, (bits & 0x7f_ffff) as i32);
    let digits = (fraction | if field == 0 { 0 } else { 1 << 23 }) >> (23 - PLACES);
    let exponent = match field {
        0xff => NOT_FINITE,
        _ if digits == 0 => ZERO_EXPONENT,
        field => field.max(1) - 127,
    };
    (if bits >> 31 != 0 { -digits } else { digits }, exponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::lane::small_float::power;
    use flipwave_isa::Float8;

    #[test]
    fn values_reject_elements_outside_the_exponent_range() {
        let lines = |exponent| Lines::<2> {
            size: 1,
            significands: [-1536, 0],
            exponents: [exponent, ZERO_EXPONENT],
            greatest: exponent,
            least: exponent,
        };
        let mut values = [1.0; 2];
        assert!(lines(-116).values(&mut values));
        assert_eq!(values, [(-1.5 * power(-116)) as f32, 0.0]);
        assert!(!lines(-117).values(&mut values));
    }

    #[test]
    fn vectorised_elements_equal_decoded_factors() {
        let eight = [Float8::Ocp, Float8::Fnuz]
            .into_iter()
            .flat_map(|kind| [SmallFloat::fp8(kind), SmallFloat::bf8(kind)]);
        let others = [SmallFloat::FP4, SmallFloat::FP6, SmallFloat::BF6];
        for format in eight.chain(others).chain([SmallFloat::F16, SmallFloat::BF16]) {
            for bits in 0..1 << format.bits {
                let expected = Factor::of(format, bits);
                let decoded = small(format, bits);
                if expected.value.is_finite() {
                    assert_eq!(
                        decoded,
                        (expected.significand, expected.exponent),
                        "{format:?} {bits:#x}"
                    );
                    assert_eq!(Factor::finite(decoded.0, decoded.1).value, expected.value);
                } else {
                    assert_eq!(decoded.1, NOT_FINITE, "{format:?} {bits:#x}");
                }
            }
        }
        for bits in (0..1 << 19).map(|bits| bits << 13) {
            let expected = Factor::truncated(bits);
            let decoded = single(bits);
            if expected.value.is_finite() {
                assert_eq!(decoded, (expected.significand, expected.exponent), "{bits:#x}");
            } else {
                assert_eq!(decoded.1, NOT_FINITE, "{bits:#x}");
            }
        }
    }
}
