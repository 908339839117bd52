//! The rows of A and the columns of B as numbers of single precision.

use super::{CHUNKS, Elements, WIDTH, load, store};
use crate::execute::lane::small_float::SmallFloat;
use crate::execute::operand::scalar_word;
use crate::instruction::Op;
use crate::wave::Wave;
use std::arch::x86_64::*;

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
    /// For which product the lanes of a group have an element: groups have one of each line. Elements of
    /// 16 bits that share a word are for products side by side, the first for an even one.
    pub place: Place,
}

/// The rows of A or the columns of B, the lines: of each [part](Parts).
pub struct Lines<const ROOM: usize> {
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

/// The elements of lines, or what goes with them: of 16 lines side by side the elements for the first
/// product, then those for the next ones, and then the same of the next lines.
#[derive(Clone, Copy)]
pub struct Parts<'a, T> {
    values: &'a [[T; WIDTH]],
    /// How many there are of each line.
    depth: usize,
}

impl<'a, T> Parts<'a, T> {
    /// Those of the part that a line is in, for each product.
    #[inline(always)]
    pub fn of(&self, line: usize) -> &'a [[T; WIDTH]] {
        &self.values[line / WIDTH * self.depth..][..self.depth]
    }
}

impl<const ROOM: usize> Lines<ROOM> {
    /// None yet.
    pub const NONE: Lines<ROOM> = Lines {
        count: 0,
        depth: 0,
        values: [0.0; ROOM],
        sizes: Sizes { greatest: 0, least: 0, are_finite: true },
    };

    /// Becomes those of a source. With `flushes` denormals of 16 bits read as plus zero.
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
        let single = |words: __m512i| _mm512_castsi512_ps(words);
        match elements {
            Elements::Single => self.fill(source, layout, |words| (single(words), 0)),
            Elements::Xf32 => {
                self.fill(source, layout, |words| (single(masked(words, !0x1fff)), 0))
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
            Elements::Small(SmallFloat::F16) => {
                // SAFETY: the array is as long as a vector.
                let order = unsafe { _mm512_loadu_si512(LOW_THEN_HIGH.as_ptr().cast()) };
                let decode = |words: __m512i| {
                    let halves = _mm512_permutexvar_epi16(order, words);
                    [_mm512_castsi512_si256(halves), _mm512_extracti64x4_epi64::<1>(halves)]
                        .map(|own| _mm512_cvtph_ps(own))
                };
                self.fill_halves(source, layout, flushes.then_some(0x7c00), decode);
            }
            Elements::Small(SmallFloat::BF16) => {
                let decode = |words: __m512i| {
                    [single(_mm512_slli_epi32::<16>(words)), single(masked(words, !0xffff))]
                };
                self.fill_halves(source, layout, flushes.then_some(0x7f80), decode);
            }
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
        let (mut greatest, mut least) = (_mm512_setzero_si512(), _mm512_set1_epi32(-1));
        let magnitude = _mm512_set1_epi32(i32::MAX);
        let mut special = 0;
        for (at, from) in layout.from.into_iter().enumerate().take(layout.chunks) {
            let (to, group) = self.part(&layout, at);
            for item in 0..layout.each {
                let (word, shift) = (item * source.bits / 32, item * source.bits % 32);
                let own = source.words(word, from);
                let (value, bad) = decode(_mm512_srlv_epi32(own, _mm512_set1_epi32(shift as i32)));
                special |= bad;
                let size = _mm512_and_si512(_mm512_castps_si512(value), magnitude);
                greatest = _mm512_max_epu32(greatest, size);
                // Zeros are the greatest of all.
                least = _mm512_min_epu32(least, _mm512_sub_epi32(size, _mm512_set1_epi32(1)));
                put(&mut to[(layout.place)(item, group)], value);
            }
        }
        (self.count, self.depth) = (layout.lines, layout.depth);
        self.sizes = Sizes {
            greatest: _mm512_reduce_max_epu32(greatest),
            least: _mm512_reduce_min_epu32(least).saturating_add(1),
            are_finite: special == 0,
        };
    }

    /// The numbers in the halves of a source's words. `decode` makes single precision of the low and of
    /// the high ones. Where denormals read as zero, the bits of the exponent are given.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    fn fill_halves(
        &mut self,
        source: Source<'_>,
        layout: Layout<impl Fn(usize, usize) -> usize>,
        flushed: Option<i16>,
        decode: impl Fn(__m512i) -> [__m512; 2],
    ) {
        let (mut greatest, mut least) = (_mm512_setzero_si512(), _mm512_set1_epi32(-1));
        for (at, from) in layout.from.into_iter().enumerate().take(layout.chunks) {
            let (to, group) = self.part(&layout, at);
            let pairs = to.as_chunks_mut::<2>().0;
            for word in 0..layout.each / 2 {
                let mut own = source.words(word, from);
                if let Some(exponent) = flushed {
                    let has = _mm512_test_epi16_mask(own, _mm512_set1_epi16(exponent));
                    own = _mm512_maskz_mov_epi16(has, own);
                }
                let size = _mm512_and_si512(own, _mm512_set1_epi16(i16::MAX));
                greatest = _mm512_max_epu16(greatest, size);
                // Zeros are the greatest of all.
                least = _mm512_min_epu16(least, _mm512_sub_epi16(size, _mm512_set1_epi16(1)));
                // Those of a word are for products side by side.
                let to = &mut pairs[(layout.place)(2 * word, group) / 2];
                for (to, value) in to.iter_mut().zip(decode(own)) {
                    put(to, value);
                }
            }
        }
        (self.count, self.depth) = (layout.lines, layout.depth);
        // Magnitudes are in the order of their bits, in single precision, too.
        let high = |words: __m512i| _mm512_srli_epi32::<16>(words);
        let low = |words: __m512i| _mm512_and_si512(words, _mm512_set1_epi32(0xffff));
        let greatest = _mm512_max_epu32(low(greatest), high(greatest));
        let least = _mm512_min_epu32(low(least), high(least));
        let single = |half: u32| {
            let [low, _] = decode(_mm512_set1_epi32(half as i32));
            _mm_cvtsi128_si32(_mm512_castsi512_si128(_mm512_castps_si512(low))) as u32
        };
        let least = match _mm512_reduce_min_epu32(least) {
            0xffff => u32::MAX,
            less_one => single(less_one + 1),
        };
        let greatest = single(_mm512_reduce_max_epu32(greatest));
        self.sizes = Sizes { greatest, least, are_finite: true };
    }

    /// Where the elements of the lanes `16 * at` and after go, and which group of lanes those are in.
    #[inline(always)]
    fn part<P>(&mut self, layout: &Layout<P>, at: usize) -> (&mut [[f32; WIDTH]], usize) {
        let lane = at * WIDTH;
        let first = (lane & (layout.lines - 1)) / WIDTH * layout.depth;
        let values = &mut self.values.as_chunks_mut().0[first..][..layout.depth];
        (values, lane >> layout.lines.trailing_zeros())
    }

    /// The elements.
    #[inline]
    pub fn values(&self) -> Parts<'_, f32> {
        Parts { values: self.values.as_chunks().0, depth: self.depth }
    }

    /// The exponents that go with the values, see [`super::super::fused::Factor::exponent`], those of two
    /// products in a word.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub fn exponents<'a>(&self, elements: Elements, room: &'a mut [u32; ROOM]) -> Parts<'a, u32> {
        let (low, zero) = (least_exponent(elements), super::super::fused::ZERO_EXPONENT);
        let exponent = |value: &[f32; WIDTH]| {
            let magnitude = _mm512_set1_epi32(i32::MAX);
            let size = _mm512_and_si512(_mm512_castps_si512(vector(value)), magnitude);
            let own = _mm512_sub_epi32(_mm512_srli_epi32::<23>(size), _mm512_set1_epi32(127));
            let own = _mm512_max_epi32(own, _mm512_set1_epi32(low));
            let is_zero = _mm512_testn_epi32_mask(size, size);
            _mm512_mask_mov_epi32(own, is_zero, _mm512_set1_epi32(zero))
        };
        let values = self.values[..self.depth * self.count].as_chunks().0;
        for (values, to) in values.as_chunks().0.iter().zip(room.as_chunks_mut::<WIDTH>().0) {
            let [even, odd] = values.each_ref().map(exponent);
            let both = _mm512_mask_mov_epi16(even, ODD_HALVES, _mm512_slli_epi32::<16>(odd));
            store(to, 0, both);
        }
        Parts { values: room.as_chunks().0, depth: self.depth / 2 }
    }
}

/// The high halves of words.
const ODD_HALVES: __mmask32 = 0xaaaa_aaaa;

/// The low halves of all words of a vector, then the high ones.
const LOW_THEN_HIGH: [u16; 32] = {
    let mut order = [0; 32];
    let mut at = 0;
    while at < 32 {
        order[at] = (at % 16 * 2 + at / 16) as u16;
        at += 1;
    }
    order
};

/// Puts numbers side by side.
#[target_feature(enable = "avx512f")]
#[inline]
fn put(to: &mut [f32; WIDTH], value: __m512) {
    // SAFETY: the array has as many numbers.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr(), value) };
}

/// Numbers side by side.
#[target_feature(enable = "avx512f")]
#[inline]
pub fn vector(values: &[f32; WIDTH]) -> __m512 {
    // SAFETY: there are as many numbers.
    unsafe { _mm512_loadu_ps(values.as_ptr()) }
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

impl Source<'_> {
    /// A word of 16 lanes from one on: a register's, or what is the same in all.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn words(&self, word: usize, from: usize) -> __m512i {
        let source = &self.op.sources[self.source];
        match source.row() {
            Some(first) => load(&self.wave.row(first.plus(word as u16)).0, from),
            None => _mm512_set1_epi32(scalar_word(self.wave, source.words[word.min(1)]) as i32),
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
