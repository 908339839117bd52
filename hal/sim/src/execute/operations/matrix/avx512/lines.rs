//! Rows of A and columns of B as single-precision numbers.

use super::super::sizes::{Digits, Sizes};
use super::product::{CHUNKS, Elements, Registers, WIDTH, load, store};
use crate::execute::lane::small_float::SmallFloat;
use crate::instruction::Word;
use crate::wave::LANES;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Layout of the elements of lines in registers.
#[derive(Clone, Copy)]
pub struct Layout {
    /// Number of lines, a power of two.
    pub lines: usize,
    /// Number of products.
    pub depth: usize,
    /// Elements per lane.
    pub each: usize,
    /// Number of consecutive elements of a lane that belong to consecutive products.
    pub run: usize,
    /// Number of groups of 16 lanes that hold elements.
    pub chunks: usize,
    /// For each group, the number of the 16 lanes in the register that provide its elements.
    pub from: [usize; CHUNKS],
    /// The first product of each run of the lanes of a group: groups hold one element of each line.
    pub places: Places,
}

/// Maximum number of runs of a lane.
const MOST_RUNS: usize = 16;

/// A product for each run of each group of lanes.
pub type Places = [[u8; MOST_RUNS]; CHUNKS];

/// Tables the first product of a run, given by the group of lanes and the run.
#[inline(always)]
pub fn places(groups: usize, runs: usize, place: impl Fn(usize, usize) -> usize) -> Places {
    let mut places = [[0; MOST_RUNS]; CHUNKS];
    for (group, places) in places[..groups].iter_mut().enumerate() {
        for (run, to) in places[..runs].iter_mut().enumerate() {
            *to = place(group, run) as u8;
        }
    }
    places
}

/// Buffer for the elements of 16 lines for a product.
pub type Room = MaybeUninit<[f32; WIDTH]>;

impl Layout {
    /// Fills the buffer run by run; `fill` writes the elements of a run's lanes from an element on.
    /// Returns the filled buffer.
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
                let to = &mut part[usize::from(self.places[group][run])..][..self.run];
                fill(to, from, run * self.run);
            }
        }
        // SAFETY: the lengths match, and the runs of all groups cover different products.
        unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), room.len()) }
    }
}

/// Powers of two that scale the elements of lines, one for each block of consecutive products.
#[derive(Clone, Copy)]
pub struct Powers {
    /// Products per block.
    pub block: usize,
    /// Exponents with the bias of single precision, those of all lines for the first block, then
    /// those for the next blocks; not all ones.
    pub exponents: [u8; LANES],
}

impl Powers {
    /// Exponents, without a bias, of 16 lines in the block of a product.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn vector(&self, lines: usize, part: usize, product: usize) -> __m512i {
        let first = lines * (product / self.block) + part * WIDTH;
        let bytes = &self.exponents[first..][..WIDTH];
        // SAFETY: the slice has the length of a vector.
        let bytes = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
        _mm512_sub_epi32(_mm512_cvtepu8_epi32(bytes), _mm512_set1_epi32(127))
    }

    /// The least and the greatest exponent.
    fn range(&self) -> (i32, i32) {
        let exponents = self.exponents.iter().map(|exponent| i32::from(*exponent) - 127);
        exponents.fold((i32::MAX, i32::MIN), |(least, greatest), exponent| {
            (least.min(exponent), greatest.max(exponent))
        })
    }
}

/// Positions of the stored elements of sparse rows, two of each four, with two bits for each.
#[derive(Clone, Copy)]
pub struct Positions {
    /// The word with the positions of a lane's elements.
    pub word: Word,
    /// Lowest bit of the first position.
    pub first_bit: u32,
    pub repeated: Repeated,
}

/// Meaning of two equal positions in a four.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Repeated {
    /// The second element counts.
    Replaced,
    /// Both elements count, which lines cannot represent.
    Added,
}

/// The lines: rows of A or columns of B.
pub struct Lines<'a> {
    values: Parts<'a, f32>,
    /// Number of lines.
    count: usize,
    powers: Option<Powers>,
    pub sizes: Sizes,
    /// `true` if all elements are finite; determined for formats of less than 16 bits.
    pub are_finite: bool,
}

/// Values of lines: for 16 neighbouring lines the elements for the first product, then those for
/// the next products, followed by the next 16 lines.
#[derive(Clone, Copy)]
pub struct Parts<'a, T> {
    values: &'a [[T; WIDTH]],
    /// Elements per line.
    depth: usize,
}

impl<'a, T> Parts<'a, T> {
    /// Values of the 16 lines that contain `line`, for each product.
    #[inline(always)]
    pub fn of(&self, line: usize) -> &'a [[T; WIDTH]] {
        &self.values[line / WIDTH * self.depth..][..self.depth]
    }
}

impl<'a> Lines<'a> {
    /// Reads a source whose elements are in these registers. With `flushes`, denormals of 16 bits
    /// read as plus zero.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    pub fn read(
        room: &'a mut [Room],
        registers: &Registers<'_>,
        elements: Elements,
        flushes: bool,
        layout: Layout,
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
                // SAFETY: the array has the length of a vector.
                let order = unsafe { _mm512_loadu_si512(LOW_THEN_HIGH.as_ptr().cast()) };
                let decode = |words: __m512i| {
                    let halves = _mm512_permutexvar_epi16(order, words);
                    let low = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
                    [low, _mm512_cvtph_ps(_mm512_extracti64x4_epi64::<1>(halves))]
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

    /// Reads the elements of a source of at most 32 bits per word. `decode` converts the element in
    /// the lowest bits, and returns a mask of the elements that are not finite.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    fn fill(
        room: &'a mut [Room],
        source: Source<'_>,
        layout: Layout,
        decode: impl Fn(__m512i) -> (__m512, __mmask16),
    ) -> Lines<'a> {
        let mut extent = Extent::new();
        let mut special = 0;
        let values = layout.fill(room, |to, from, first| {
            for (item, to) in (first..).zip(to) {
                let (word, shift) = (item * source.bits / 32, item * source.bits % 32);
                let words = source.registers.vector(word, from);
                let mut bits = _mm512_srlv_epi32(words, _mm512_set1_epi32(shift as i32));
                if shift + source.bits > 32 {
                    let next = source.registers.vector(word + 1, from);
                    let above = _mm512_set1_epi32(32 - shift as i32);
                    bits = _mm512_or_si512(bits, _mm512_sllv_epi32(next, above));
                }
                let (value, bad) = decode(bits);
                special |= bad;
                extent.add(value);
                put(to, value);
            }
        });
        let sizes = extent.sizes();
        let values = Parts { values, depth: layout.depth };
        Lines { values, count: layout.lines, powers: None, sizes, are_finite: special == 0 }
    }

    /// Reads the elements in the halves of a source's words. `decode` converts the low and the high
    /// halves to single precision. If denormals read as zero, the bits of the exponent are given.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    fn fill_halves(
        room: &'a mut [Room],
        source: Source<'_>,
        layout: Layout,
        flushed: Option<i16>,
        decode: impl Fn(__m512i) -> [__m512; 2],
    ) -> Lines<'a> {
        let (mut greatest, mut least) = (_mm512_setzero_si512(), _mm512_set1_epi32(-1));
        let values = layout.fill(room, |to, from, first| {
            for (word, to) in (first / 2..).zip(to.as_chunks_mut::<2>().0) {
                let mut words = source.registers.vector(word, from);
                if let Some(exponent) = flushed {
                    let has = _mm512_test_epi16_mask(words, _mm512_set1_epi16(exponent));
                    words = _mm512_maskz_mov_epi16(has, words);
                }
                let size = _mm512_and_si512(words, _mm512_set1_epi16(i16::MAX));
                greatest = _mm512_max_epu16(greatest, size);
                // After subtracting one, zeros are the greatest values.
                least = _mm512_min_epu16(least, _mm512_sub_epi16(size, _mm512_set1_epi16(1)));
                for (to, value) in to.iter_mut().zip(decode(words)) {
                    put(to, value);
                }
            }
        });
        // Magnitudes are ordered like their bits, also in single precision.
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
        let (sizes, values) = (Sizes { greatest, least }, Parts { values, depth: layout.depth });
        Lines { values, count: layout.lines, powers: None, sizes, are_finite: true }
    }

    /// Reads a source as [`Lines::read`] does and scales its elements. Returns `None` if one is not
    /// finite, or a product is not a normal number.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub fn read_scaled(
        room: &'a mut [Room],
        registers: &Registers<'_>,
        elements: Elements,
        layout: Layout,
        powers: Powers,
    ) -> Option<Lines<'a>> {
        let (count, depth) = (layout.lines, layout.depth);
        let lines = Lines::read(room, registers, elements, false, layout);
        let (length, are_finite) = (lines.values.values.len(), lines.are_finite);
        if !are_finite {
            return None;
        }
        let (mut extent, mut lost) = (Extent::new(), 0);
        for (at, value) in room[..length].iter_mut().enumerate() {
            let exponents = powers.vector(count, at / depth, at % depth);
            // SAFETY: the lines have been read into this part of the buffer.
            let unscaled = vector(unsafe { value.assume_init_ref() });
            let scaled = _mm512_scalef_ps(unscaled, _mm512_cvtepi32_ps(exponents));
            lost |= changed_class(unscaled, scaled);
            put(value, scaled);
            extent.add(scaled);
        }
        let sizes = extent.sizes();
        // SAFETY: as above.
        let values = unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), length) };
        let values = Parts { values, depth };
        (lost == 0).then_some(Lines { values, count, powers: Some(powers), sizes, are_finite })
    }

    /// Reads sparse rows, with zeros for the elements that are not stored. The layout is that of all
    /// elements, in runs of fours. Returns `None` if lines cannot represent the rows.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub fn read_sparse(
        [stored, room]: [&'a mut [Room]; 2],
        registers: &Registers<'_>,
        elements: Elements,
        layout: Layout,
        positions: (&Registers<'_>, Positions),
    ) -> Option<Lines<'a>> {
        let Layout { lines, depth, each, chunks, from, places: fours, .. } = layout;
        let (words, Positions { first_bit, repeated, .. }) = positions;
        let groups = (chunks * WIDTH) >> lines.trailing_zeros();
        let halved = |group: usize, pair: usize| usize::from(fours[group][pair]) / 2;
        let stored_layout = Layout {
            depth: depth / 2,
            each: each / 2,
            run: 2,
            places: places(groups, each / 4, halved),
            ..layout
        };
        let stored = Lines::read(stored, registers, elements, false, stored_layout);
        let room = &mut room[..lines / WIDTH * depth];
        let mut equal = 0;
        for (chunk, from) in from.into_iter().enumerate().take(chunks) {
            let lane = chunk * WIDTH;
            let group = lane >> lines.trailing_zeros();
            let line = lane & (lines - 1);
            let values = stored.values.of(line);
            let room = &mut room[line / WIDTH * depth..][..depth];
            let bits = words.vector(0, from);
            for pair in 0..each / 4 {
                let position = |number: u32| {
                    let bit = (first_bit + 4 * pair as u32 + 2 * number) % 32;
                    let shifted = _mm512_srlv_epi32(bits, _mm512_set1_epi32(bit as i32));
                    _mm512_and_si512(shifted, _mm512_set1_epi32(3))
                };
                let [low, high] = [position(0), position(1)];
                equal |= _mm512_cmpeq_epi32_mask(low, high);
                let first = usize::from(fours[group][pair]);
                let [one, other] = [0, 1].map(|at| vector(&values[first / 2 + at]));
                for (at, to) in room[first..][..4].iter_mut().enumerate() {
                    let at = _mm512_set1_epi32(at as i32);
                    let is_low = _mm512_cmpeq_epi32_mask(low, at);
                    let is_high = _mm512_cmpeq_epi32_mask(high, at);
                    let value = _mm512_maskz_mov_ps(is_low, one);
                    put(to, _mm512_mask_mov_ps(value, is_high, other));
                }
            }
        }
        // SAFETY: the fours of all groups cover all products.
        let values = unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), room.len()) };
        let is_whole = repeated == Repeated::Replaced || equal == 0;
        is_whole.then_some(Lines { values: Parts { values, depth }, ..stored })
    }

    /// Precision of the elements.
    pub fn digits(&self, elements: Elements) -> Digits {
        let digits = digits(elements);
        self.powers.map_or(digits, |powers| digits.scaled(powers.range()))
    }

    /// The elements.
    #[inline]
    pub fn values(&self) -> Parts<'a, f32> {
        self.values
    }

    /// Exponents of the values (see [`super::super::fused::Factor::exponent`]), those of two
    /// products in a word.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub fn exponents<'b>(
        &self,
        elements: Elements,
        room: &'b mut [MaybeUninit<[u32; WIDTH]>],
    ) -> Parts<'b, u32> {
        let low = _mm512_set1_epi32(digits(elements).least_exponent.0);
        let zero = super::super::fused::ZERO_EXPONENT;
        let exponent = |at: usize, value: &[f32; WIDTH]| {
            let low = match &self.powers {
                None => low,
                Some(powers) => {
                    let depth = self.values.depth;
                    _mm512_add_epi32(low, powers.vector(self.count, at / depth, at % depth))
                }
            };
            let magnitude = _mm512_set1_epi32(i32::MAX);
            let size = _mm512_and_si512(_mm512_castps_si512(vector(value)), magnitude);
            let exponent = _mm512_sub_epi32(_mm512_srli_epi32::<23>(size), _mm512_set1_epi32(127));
            let exponent = _mm512_max_epi32(exponent, low);
            let is_zero = _mm512_testn_epi32_mask(size, size);
            _mm512_mask_mov_epi32(exponent, is_zero, _mm512_set1_epi32(zero))
        };
        let Parts { values, depth } = self.values;
        let room = &mut room[..values.len() / 2];
        for (pair, ([even, odd], to)) in values.as_chunks().0.iter().zip(&mut *room).enumerate() {
            let [even, odd] = [exponent(2 * pair, even), exponent(2 * pair + 1, odd)];
            let both = _mm512_mask_mov_epi16(even, ODD_HALVES, _mm512_slli_epi32::<16>(odd));
            // SAFETY: the buffer has room for a vector.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), both) };
        }
        // SAFETY: the lengths match, and all pairs were written.
        let values = unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), room.len()) };
        Parts { values, depth: depth / 2 }
    }
}

/// The high halves of words.
const ODD_HALVES: __mmask32 = 0xaaaa_aaaa;

/// Low halves of all words of a vector, then the high halves.
const LOW_THEN_HIGH: [u16; 32] = {
    let mut order = [0; 32];
    let mut at = 0;
    while at < 32 {
        order[at] = (at % 16 * 2 + at / 16) as u16;
        at += 1;
    }
    order
};

/// Stores numbers.
#[target_feature(enable = "avx512f")]
#[inline]
pub fn put(to: &mut Room, value: __m512) {
    // SAFETY: the buffer has room for a vector.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr().cast(), value) };
}

/// Greatest and least magnitude of the lanes of several vectors, as bits. The least one is less by one, so
/// that zeros count as the greatest.
struct Extent {
    greatest: __m512i,
    less_one: __m512i,
}

impl Extent {
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn new() -> Extent {
        Extent { greatest: _mm512_setzero_si512(), less_one: _mm512_set1_epi32(-1) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn add(&mut self, value: __m512) {
        let size = _mm512_and_si512(_mm512_castps_si512(value), _mm512_set1_epi32(i32::MAX));
        self.greatest = _mm512_max_epu32(self.greatest, size);
        let less_one = _mm512_sub_epi32(size, _mm512_set1_epi32(1));
        self.less_one = _mm512_min_epu32(self.less_one, less_one);
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn sizes(&self) -> Sizes {
        Sizes {
            greatest: _mm512_reduce_max_epu32(self.greatest),
            least: _mm512_reduce_min_epu32(self.less_one).saturating_add(1),
        }
    }
}

/// Loads numbers.
#[target_feature(enable = "avx512f")]
#[inline]
pub fn vector(values: &[f32; WIDTH]) -> __m512 {
    // SAFETY: the array has the length of a vector.
    unsafe { _mm512_loadu_ps(values.as_ptr()) }
}

/// Lanes in which a factor made a number other than zero a zero, a denormal, or infinite.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
pub fn changed_class(before: __m512, after: __m512) -> __mmask16 {
    const ZERO: i32 = 0x02 | 0x04;
    const INFINITE_OR_DENORMAL: i32 = 0x08 | 0x10 | 0x20;
    _mm512_fpclass_ps_mask::<INFINITE_OR_DENORMAL>(after)
        | _mm512_fpclass_ps_mask::<ZERO>(after) & !_mm512_fpclass_ps_mask::<ZERO>(before)
}

/// The digits of floating-point elements.
fn digits(elements: Elements) -> Digits {
    match elements {
        Elements::Small(format) => Digits::of(format),
        _ => Digits::XF32,
    }
}

/// Registers that hold the elements of lines, and the bits per element.
struct Source<'a> {
    registers: &'a Registers<'a>,
    bits: usize,
}

/// Decodes numbers of a format of less than 16 bits in the lowest bits of words, see
/// [`Lines::fill`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
#[inline]
fn small(format: SmallFloat, words: __m512i) -> (__m512, __mmask16) {
    let masked = |bits: i32| _mm512_and_si512(words, _mm512_set1_epi32(bits));
    let sign = 1 << (format.bits - 1);
    let magnitude = masked(sign - 1);
    // Interprets the exponent as if its field were at the position of single precision.
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
    let value = _mm512_or_ps(value, _mm512_castsi512_ps(sign));
    (if bad == 0 { value } else { decoded(format, words, value, bad) }, bad)
}

/// Decodes the numbers of some lanes one by one.
#[cold]
#[target_feature(enable = "avx512f")]
fn decoded(format: SmallFloat, words: __m512i, values: __m512, lanes: __mmask16) -> __m512 {
    let (mut bits, mut decoded) = ([0; WIDTH], [0; WIDTH]);
    store(&mut bits, 0, words);
    store(&mut decoded, 0, _mm512_castps_si512(values));
    for lane in (0..WIDTH).filter(|lane| lanes >> lane & 1 != 0) {
        let mask = u32::MAX >> (32 - format.bits);
        decoded[lane] = format.decode(bits[lane] & mask).to_bits();
    }
    _mm512_castsi512_ps(load(&decoded, 0))
}
