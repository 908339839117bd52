//! The rows of A and the columns of B as numbers of single precision.

use super::super::sizes::{Digits, Sizes};
use super::product::{CHUNKS, Elements, Registers, WIDTH};
use crate::execute::lane::small_float::SmallFloat;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Where the elements of lines lie: for each product of each line one.
pub struct Layout<Place> {
    /// How many lines there are, a power of two.
    pub lines: usize,
    /// How many products there are.
    pub depth: usize,
    /// Elements of a lane.
    pub each: usize,
    /// How many of them in a row are for products side by side.
    pub run: usize,
    /// How many times 16 lanes have elements.
    pub chunks: usize,
    /// For each of these which 16 lanes' elements they have.
    pub from: [usize; CHUNKS],
    /// The first product of a run of the lanes of a group: groups have one element of each line.
    pub place: Place,
}

/// Room for the elements of 16 lines for a product.
pub type Room = MaybeUninit<[f32; WIDTH]>;

impl<Place: Fn(usize, usize) -> usize> Layout<Place> {
    /// Fills room by runs, to which `fill` writes what their lanes have from an element on; gives what
    /// was filled.
    #[inline(always)]
    fn fill<'a>(
        &self,
        room: &'a mut [Room],
        mut fill: impl FnMut(&mut [Room], usize, usize),
    ) -> &'a [[f32; WIDTH]] {
        let runs = self.each / self.run;
        let room = &mut room[..self.lines / WIDTH * self.depth];
        assert_eq!(room.len(), self.chunks * runs * self.run, "elements of all lines");
        for (at, from) in self.from.into_iter().enumerate().take(self.chunks) {
            let lane = at * WIDTH;
            let group = lane >> self.lines.trailing_zeros();
            let part = (lane & (self.lines - 1)) / WIDTH * self.depth;
            let part = &mut room[part..][..self.depth];
            for run in 0..runs {
                let to = &mut part[(self.place)(run, group)..][..self.run];
                fill(to, from, run * self.run);
            }
        }
        // SAFETY: there are as many, and the runs of all groups are for different products.
        unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), room.len()) }
    }
}

/// The rows of A or the columns of B, the lines.
pub struct Lines<'a> {
    values: Parts<'a, f32>,
    pub sizes: Sizes,
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

impl<'a> Lines<'a> {
    /// Those of a source, whose elements are in these registers. With `flushes` denormals of 16 bits read
    /// as plus zero.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    pub fn read(
        room: &'a mut [Room],
        registers: &Registers<'_>,
        elements: Elements,
        flushes: bool,
        layout: Layout<impl Fn(usize, usize) -> usize>,
    ) -> Lines<'a> {
        let source = Source { registers, bits: elements.bits() };
        let masked = |words: __m512i, bits: i32| _mm512_and_si512(words, _mm512_set1_epi32(bits));
        let single = |words: __m512i| _mm512_castsi512_ps(words);
        match elements {
            Elements::Single => Lines::fill(room, source, layout, |words| (single(words), 0)),
            Elements::Xf32 => {
                Lines::fill(room, source, layout, |words| (single(masked(words, !0x1fff)), 0))
            }
            Elements::Signed(bits) => {
                let above = _mm512_set1_epi32(32 - bits as i32);
                Lines::fill(room, source, layout, |words| {
                    let number = _mm512_srav_epi32(_mm512_sllv_epi32(words, above), above);
                    (_mm512_cvtepi32_ps(number), 0)
                })
            }
            Elements::Unsigned(bits) => Lines::fill(room, source, layout, |words| {
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
                Lines::fill_halves(room, source, layout, flushes.then_some(0x7c00), decode)
            }
            Elements::Small(SmallFloat::BF16) => {
                let decode = |words: __m512i| {
                    [single(_mm512_slli_epi32::<16>(words)), single(masked(words, !0xffff))]
                };
                Lines::fill_halves(room, source, layout, flushes.then_some(0x7f80), decode)
            }
            Elements::Small(format) => {
                Lines::fill(room, source, layout, |words| small(format, words))
            }
        }
    }

    /// The numbers in the words of a source. `decode` makes them of those in the lowest bits, and says
    /// which are none or infinite, where the value is not that then.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    fn fill(
        room: &'a mut [Room],
        source: Source<'_>,
        layout: Layout<impl Fn(usize, usize) -> usize>,
        decode: impl Fn(__m512i) -> (__m512, __mmask16),
    ) -> Lines<'a> {
        let (mut greatest, mut least) = (_mm512_setzero_si512(), _mm512_set1_epi32(-1));
        let magnitude = _mm512_set1_epi32(i32::MAX);
        let mut special = 0;
        let values = layout.fill(room, |to, from, first| {
            for (item, to) in (first..).zip(to) {
                let (word, shift) = (item * source.bits / 32, item * source.bits % 32);
                let own = source.registers.vector(word, from);
                let (value, bad) = decode(_mm512_srlv_epi32(own, _mm512_set1_epi32(shift as i32)));
                special |= bad;
                let size = _mm512_and_si512(_mm512_castps_si512(value), magnitude);
                greatest = _mm512_max_epu32(greatest, size);
                // Zeros are the greatest of all.
                least = _mm512_min_epu32(least, _mm512_sub_epi32(size, _mm512_set1_epi32(1)));
                put(to, value);
            }
        });
        let sizes = Sizes {
            greatest: _mm512_reduce_max_epu32(greatest),
            least: _mm512_reduce_min_epu32(least).saturating_add(1),
        };
        let values = Parts { values, depth: layout.depth };
        Lines { values, sizes, are_finite: special == 0 }
    }

    /// The numbers in the halves of a source's words. `decode` makes single precision of the low and of
    /// the high ones. Where denormals read as zero, the bits of the exponent are given.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    fn fill_halves(
        room: &'a mut [Room],
        source: Source<'_>,
        layout: Layout<impl Fn(usize, usize) -> usize>,
        flushed: Option<i16>,
        decode: impl Fn(__m512i) -> [__m512; 2],
    ) -> Lines<'a> {
        let (mut greatest, mut least) = (_mm512_setzero_si512(), _mm512_set1_epi32(-1));
        let values = layout.fill(room, |to, from, first| {
            for (word, to) in (first / 2..).zip(to.as_chunks_mut::<2>().0) {
                let mut own = source.registers.vector(word, from);
                if let Some(exponent) = flushed {
                    let has = _mm512_test_epi16_mask(own, _mm512_set1_epi16(exponent));
                    own = _mm512_maskz_mov_epi16(has, own);
                }
                let size = _mm512_and_si512(own, _mm512_set1_epi16(i16::MAX));
                greatest = _mm512_max_epu16(greatest, size);
                // Zeros are the greatest of all.
                least = _mm512_min_epu16(least, _mm512_sub_epi16(size, _mm512_set1_epi16(1)));
                for (to, value) in to.iter_mut().zip(decode(own)) {
                    put(to, value);
                }
            }
        });
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
        let values = Parts { values, depth: layout.depth };
        Lines { values, sizes: Sizes { greatest, least }, are_finite: true }
    }

    /// The elements.
    #[inline]
    pub fn values(&self) -> Parts<'a, f32> {
        self.values
    }

    /// The exponents that go with the values, see [`super::super::fused::Factor::exponent`], those of two
    /// products in a word.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub fn exponents<'b>(
        &self,
        elements: Elements,
        room: &'b mut [MaybeUninit<[u32; WIDTH]>],
    ) -> Parts<'b, u32> {
        let (low, zero) = (digits(elements).least_exponent, super::super::fused::ZERO_EXPONENT);
        let exponent = |value: &[f32; WIDTH]| {
            let magnitude = _mm512_set1_epi32(i32::MAX);
            let size = _mm512_and_si512(_mm512_castps_si512(vector(value)), magnitude);
            let own = _mm512_sub_epi32(_mm512_srli_epi32::<23>(size), _mm512_set1_epi32(127));
            let own = _mm512_max_epi32(own, _mm512_set1_epi32(low));
            let is_zero = _mm512_testn_epi32_mask(size, size);
            _mm512_mask_mov_epi32(own, is_zero, _mm512_set1_epi32(zero))
        };
        let Parts { values, depth } = self.values;
        let room = &mut room[..values.len() / 2];
        for (values, to) in values.as_chunks().0.iter().zip(&mut *room) {
            let [even, odd] = values.each_ref().map(exponent);
            let both = _mm512_mask_mov_epi16(even, ODD_HALVES, _mm512_slli_epi32::<16>(odd));
            // SAFETY: there is room for a vector.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), both) };
        }
        // SAFETY: there are as many pairs, and all were written.
        let values = unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), room.len()) };
        Parts { values, depth: depth / 2 }
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
fn put(to: &mut Room, value: __m512) {
    // SAFETY: there is room for as many numbers.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr().cast(), value) };
}

/// Numbers side by side.
#[target_feature(enable = "avx512f")]
#[inline]
pub fn vector(values: &[f32; WIDTH]) -> __m512 {
    // SAFETY: there are as many numbers.
    unsafe { _mm512_loadu_ps(values.as_ptr()) }
}

/// The digits of floating-point elements.
pub fn digits(elements: Elements) -> Digits {
    match elements {
        Elements::Small(format) => Digits::of(format),
        _ => Digits::XF32,
    }
}

/// Where the elements of lines come from: so many bits each, side by side.
struct Source<'a> {
    registers: &'a Registers<'a>,
    bits: usize,
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
