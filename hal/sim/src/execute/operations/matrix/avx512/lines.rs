//! The rows of A and the columns of B as numbers of single precision.

use super::{CHUNKS, Elements, WIDTH, load};
use crate::execute::lane::small_float::SmallFloat;
use crate::instruction::Op;
use crate::wave::{Row, Wave};
use std::arch::x86_64::*;
use std::borrow::Cow;

/// Where the elements of lines lie.
pub struct Layout<Place> {
    /// How many lines there are, a power of two.
    pub lines: usize,
    /// How many products there are.
    pub depth: usize,
    /// Elements of a lane.
    pub each: usize,
    /// How many times 16 lanes have elements.
    pub chunks: usize,
    /// For each 16 lanes the first of those whose elements they have.
    pub from: [usize; CHUNKS],
    /// For which product the lanes of a group have an element: groups have one of each line.
    pub place: Place,
}

/// The rows of A or the columns of B, the lines: of each [part](Parts).
pub struct Lines<const ROOM: usize, const PART: usize> {
    /// How many lines there are.
    count: usize,
    depth: usize,
    values: [f32; ROOM],
    pub sizes: Sizes,
}

/// How great elements are.
#[derive(Clone, Copy)]
pub struct Sizes {
    /// Bits of the greatest magnitude.
    pub greatest: u32,
    /// Bits of the least magnitude that is not zero; all ones if there is none.
    pub least: u32,
    /// Whether all elements are numbers and not infinite; counts for formats of less than 16 bits,
    /// whose values are wrong where it does not hold.
    pub are_finite: bool,
}

/// The elements of lines, or what goes with them: of some lines side by side the elements for the first
/// product, then those for the next ones, and then the same of the next lines.
#[derive(Clone, Copy)]
pub struct Parts<'a, T, const PART: usize> {
    values: &'a [[T; PART]],
    depth: usize,
}

impl<'a, T, const PART: usize> Parts<'a, T, PART> {
    /// Those from a line on that begins a part, for each product.
    #[inline(always)]
    pub fn from(&self, line: usize) -> &'a [[T; PART]] {
        &self.values[line / PART * self.depth..][..self.depth]
    }
}

impl<const ROOM: usize, const PART: usize> Lines<ROOM, PART> {
    /// None yet.
    pub const NONE: Lines<ROOM, PART> = Lines {
        count: 0,
        depth: 0,
        values: [0.0; ROOM],
        sizes: Sizes { greatest: 0, least: 0, are_finite: true },
    };

    /// Becomes those of a source.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    pub fn read(
        &mut self,
        (wave, op, source): (&Wave, &Op, usize),
        elements: Elements,
        flushes: bool,
        layout: Layout<impl Fn(usize, usize) -> usize>,
    ) {
        let source = Source { wave, op, source, bits: elements.bits() };
        let masked = |words: __m512i, bits: i32| _mm512_and_si512(words, _mm512_set1_epi32(bits));
        // Denormals read as plus zero.
        let flushed = |words: __m512i, value: __m512, exponent: i32| match flushes {
            true => {
                let has = _mm512_test_epi32_mask(words, _mm512_set1_epi32(exponent));
                _mm512_maskz_mov_ps(has, value)
            }
            false => value,
        };
        match elements {
            Elements::Single => self.fill(source, layout, |words| (_mm512_castsi512_ps(words), 0)),
            Elements::Xf32 => {
                self.fill(source, layout, |words| (_mm512_castsi512_ps(masked(words, !0x1fff)), 0))
            }
            Elements::Signed(bits) => {
                let above = _mm512_set1_epi32(32 - bits as i32);
                self.fill(source, layout, |words| {
                    let number = _mm512_srav_epi32(_mm512_sllv_epi32(words, above), above);
                    (_mm512_cvtepi32_ps(number), 0)
                })
            }
            Elements::Unsigned(bits) => self.fill(source, layout, |words| {
                (_mm512_cvtepi32_ps(masked(words, (1 << bits) - 1)), 0)
            }),
            Elements::Small(SmallFloat::F16) => self.fill(source, layout, |words| {
                let value = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(words));
                (flushed(words, value, 0x7c00), 0)
            }),
            Elements::Small(SmallFloat::BF16) => self.fill(source, layout, |words| {
                let value = _mm512_castsi512_ps(_mm512_slli_epi32::<16>(words));
                (flushed(words, value, 0x7f80), 0)
            }),
            Elements::Small(format) => self.fill(source, layout, |words| small(format, words)),
        }
    }

    /// The numbers in the words of a source. `decode` makes them of those in the lowest bits, and says
    /// which are none or infinite, where the value is not that then.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    fn fill(
        &mut self,
        source: Source<'_>,
        layout: Layout<impl Fn(usize, usize) -> usize>,
        decode: impl Fn(__m512i) -> (__m512, __mmask16),
    ) {
        let Layout { lines: count, depth, each, chunks, from, place } = layout;
        let (mut greatest, mut least) = (_mm512_setzero_si512(), _mm512_set1_epi32(-1));
        let magnitude = _mm512_set1_epi32(i32::MAX);
        let mut special = 0;
        for (at, from) in from.into_iter().enumerate().take(chunks) {
            let (line, group) =
                ((at * WIDTH) & (count - 1), (at * WIDTH) >> count.trailing_zeros());
            let to = &mut self.values.as_chunks_mut().0[line / PART * depth..];
            let to = &mut to[..WIDTH / PART * depth];
            for item in 0..each {
                let (word, shift) = (item * source.bits / 32, item * source.bits % 32);
                let own = load(&source.row(word).0, from);
                let (value, bad) = decode(_mm512_srlv_epi32(own, _mm512_set1_epi32(shift as i32)));
                special |= bad;
                let size = _mm512_and_si512(_mm512_castps_si512(value), magnitude);
                greatest = _mm512_max_epu32(greatest, size);
                // Zeros are the greatest of all.
                least = _mm512_min_epu32(least, _mm512_sub_epi32(size, _mm512_set1_epi32(1)));
                let mut values = [0.0; WIDTH];
                // SAFETY: the array has as many numbers.
                unsafe { _mm512_storeu_ps(values.as_mut_ptr(), value) };
                let first = place(item, group);
                for (part, own) in values.as_chunks::<PART>().0.iter().enumerate() {
                    to[first + part * depth] = *own;
                }
            }
        }
        (self.count, self.depth) = (count, depth);
        self.sizes = Sizes {
            greatest: _mm512_reduce_max_epu32(greatest),
            least: _mm512_reduce_min_epu32(least).saturating_add(1),
            are_finite: special == 0,
        };
    }

    /// The elements.
    #[inline]
    pub fn values(&self) -> Parts<'_, f32, PART> {
        Parts { values: self.values.as_chunks().0, depth: self.depth }
    }

    /// The exponents that go with the values, see [`super::super::fused::Factor::exponent`].
    #[target_feature(enable = "avx512f")]
    pub fn exponents<'a>(
        &self,
        elements: Elements,
        room: &'a mut [i32; ROOM],
    ) -> Parts<'a, i32, PART> {
        let (low, zero) = (least_exponent(elements), super::super::fused::ZERO_EXPONENT);
        let values = self.values[..self.depth * self.count].as_chunks::<WIDTH>().0;
        for (value, to) in values.iter().zip(room.as_chunks_mut::<WIDTH>().0) {
            // SAFETY: both have as many numbers.
            unsafe {
                let size = _mm512_and_si512(
                    _mm512_loadu_si512(value.as_ptr().cast()),
                    _mm512_set1_epi32(i32::MAX),
                );
                let own = _mm512_sub_epi32(_mm512_srli_epi32::<23>(size), _mm512_set1_epi32(127));
                let own = _mm512_max_epi32(own, _mm512_set1_epi32(low));
                let is_zero = _mm512_testn_epi32_mask(size, size);
                let own = _mm512_mask_mov_epi32(own, is_zero, _mm512_set1_epi32(zero));
                _mm512_storeu_si512(to.as_mut_ptr().cast(), own);
            }
        }
        Parts { values: room.as_chunks().0, depth: self.depth }
    }
}

/// The exponent of the least normal number.
pub fn least_exponent(elements: Elements) -> i32 {
    match elements {
        Elements::Small(format) => format.least_exponent(),
        _ => SmallFloat::BF16.least_exponent(),
    }
}

/// Where the elements of lines come from: so many bits each, side by side.
struct Source<'a> {
    wave: &'a Wave,
    op: &'a Op,
    source: usize,
    bits: usize,
}

impl<'a> Source<'a> {
    /// A word of all lanes: a register's, or one that is the same in all.
    #[inline(always)]
    fn row(&self, word: usize) -> Cow<'a, Row> {
        let source = &self.op.sources[self.source];
        match source.row() {
            Some(first) => Cow::Borrowed(self.wave.row(first.plus(word as u16))),
            None => Cow::Owned(super::row(self.wave, source.words[word.min(1)])),
        }
    }
}

/// Numbers of a format of less than 16 bits in the lowest bits of words, see [`Lines::fill`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
fn small(format: SmallFloat, words: __m512i) -> (__m512, __mmask16) {
    let masked = |bits: i32| _mm512_and_si512(words, _mm512_set1_epi32(bits));
    let sign = 1 << (format.bits - 1);
    let magnitude = masked(sign - 1);
    // As if the exponent's field began where that of single precision does.
    let places = _mm512_set1_epi32(23 - format.mantissa as i32);
    let digits = _mm512_castsi512_ps(_mm512_sllv_epi32(magnitude, places));
    let scale = ((126 + format.least_exponent() + 127) as u32) << 23;
    let value = _mm512_mul_ps(digits, _mm512_set1_ps(f32::from_bits(scale)));
    let to_top = _mm512_set1_epi32(32 - format.bits as i32);
    let sign = _mm512_and_si512(_mm512_sllv_epi32(words, to_top), _mm512_set1_epi32(i32::MIN));
    let (least, one) = format.not_finite();
    let all = masked(2 * (1 << (format.bits - 1)) - 1);
    let bad = _mm512_cmpge_epu32_mask(magnitude, _mm512_set1_epi32(least as i32))
        | _mm512_cmpeq_epi32_mask(all, _mm512_set1_epi32(one as i32));
    (_mm512_or_ps(value, _mm512_castsi512_ps(sign)), bad)
}
