//! Products with 16 rows and columns whose sums are in the order of k, one fused multiply-add after
//! the other, and products of integers: WMMA and SWMMAC.

use super::lines::{Layout, Lines, Positions, Room, changed_class, places, put, vector};
use super::product::{EACH, Elements, MOST_RESULTS, Registers, WIDTH, load, store};
use crate::execute::lane::{LaneValue, settle};
use crate::instruction::{Op, Word};
use crate::wave::{Level, Row, Wave};
use std::arch::x86_64::*;

/// A product of matrices with 16 rows and columns.
pub struct WaveProduct<'a, K, P> {
    pub elements: [Elements; 2],
    /// First register of A, relative to the one that the instruction names.
    pub first_of_a: usize,
    /// Products per sum, including those with elements that a sparse A does not store.
    pub depth: usize,
    /// Number of lanes that hold a matrix whose elements are all stored, and elements per lane.
    pub holders: (usize, usize),
    /// Number of consecutive elements of a lane with consecutive k, in A and in B.
    pub runs: [usize; 2],
    /// Maps a matrix, a lane and its element to k.
    pub k: K,
    /// Present if A is sparse.
    pub sparse: Option<SparseRows>,
    /// Scales of the elements of A and of B.
    pub scales: [Option<Scales<'a>>; 2],
    /// Signs that the instruction changes.
    pub signs: Signs,
    pub arithmetic: Arithmetic,
    /// The first word of C.
    pub addend: Word,
    pub results: Results,
    /// Maps a lane and its element of D to the place of the element.
    pub place: P,
}

/// Elements and registers of D.
#[derive(Clone, Copy)]
pub struct Results {
    /// Elements per lane.
    pub elements: usize,
    /// Registers that hold them.
    pub registers: usize,
}

/// A sparse A.
#[derive(Clone, Copy)]
pub struct SparseRows {
    /// Number of lanes that hold A, and elements per lane, of which half are stored.
    pub holders: (usize, usize),
    pub positions: Positions,
}

/// Factors of the elements of lines, one for each block of consecutive products.
#[derive(Clone, Copy)]
pub struct Scales<'a> {
    /// Products per block.
    pub block: usize,
    /// The factors of the 16 lines, block by block.
    pub factors: &'a [[f32; WIDTH]],
}

/// Sign bits that are inverted in elements of A and of B, for even and odd k, and what happens to
/// elements of C first.
#[derive(Clone, Copy, Default)]
pub struct Signs {
    pub factors: [[u32; 2]; 2],
    /// Bits of C that are cleared.
    pub cleared: u32,
    /// Bits of C that are inverted then.
    pub inverted: u32,
}

/// Place of an element of D.
#[derive(Clone, Copy)]
pub struct Place {
    /// Row of the matrix.
    pub row: usize,
    /// Register, relative to the first.
    pub register: usize,
    /// Lowest bit in the register.
    pub bit: u32,
}

/// Type of the elements of C or D.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// Single precision.
    F32,
    /// Half precision.
    F16,
    /// Bfloat16.
    Bf16,
}

/// NaN of a sum that has no number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Nans {
    /// The first source NaN.
    FirstSource,
    /// A quiet NaN without sign and payload.
    One,
}

/// Arithmetic of sums.
#[derive(Clone, Copy)]
pub enum Arithmetic {
    /// Integers, which wrap around.
    Wrapping,
    /// Integers, clamped to 32 bits at the end.
    Saturating,
    /// Single precision.
    Floats {
        /// Elements of C.
        addend: Number,
        /// Elements of D.
        result: Number,
        nans: Nans,
        /// `true` if the bits of registers around the elements of D are kept.
        keeps_others: bool,
    },
}

/// The registers of D.
pub type Rows = [Row; MOST_RESULTS];

/// Computes D = A * B + C. Returns `None` if AVX-512 is not available or a scaled element is not a
/// single-precision number.
pub fn multiply_wave<K, P>(wave: &Wave, op: &Op, product: &WaveProduct<'_, K, P>) -> Option<Rows>
where
    K: Fn(usize, usize, usize) -> usize,
    P: Fn(usize, usize) -> Place,
{
    if wave.level != Level::Avx512 {
        return None;
    }
    // SAFETY: the host has this level.
    unsafe {
        match product.depth {
            ..=16 => multiply::<16, K, P>(wave, op, product),
            17..=32 => multiply::<32, K, P>(wave, op, product),
            _ => multiply::<128, K, P>(wave, op, product),
        }
    }
}

/// Writes the first registers of the result of a product.
pub fn write_wave(wave: &mut Wave, op: &Op, first: usize, result: &[Row]) {
    let lanes = usize::from(wave.machine.lanes);
    for (register, words) in result.iter().enumerate() {
        let row = wave.row_mut(op.destination.plus((first + register) as u16));
        row.0[..lanes].copy_from_slice(&words.0[..lanes]);
    }
    wave.written_lanes = Some(wave.machine.all_lanes());
}

/// The elements of the 16 rows of A or columns of B, product by product.
type Elements16<'a> = &'a [[f32; WIDTH]];

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
fn multiply<const DEPTH: usize, K, P>(
    wave: &Wave,
    op: &Op,
    product: &WaveProduct<'_, K, P>,
) -> Option<Rows>
where
    K: Fn(usize, usize, usize) -> usize,
    P: Fn(usize, usize) -> Place,
{
    let mut rooms = [const { [const { Room::uninit() }; DEPTH] }; 3];
    let [left, right, stored] = &mut rooms;
    let a = match &product.sparse {
        Some(rows) => sparse(wave, op, product, rows, [stored, left]),
        None => dense(wave, op, product, 0, left),
    }?;
    let b = dense(wave, op, product, 1, right)?;
    let Results { elements, registers } = product.results;
    // Each vector of D belongs to an element number and to 16 lanes.
    let part = |vector: usize| (vector / elements * WIDTH, vector % elements);
    let places: [Place; WIDTH] = std::array::from_fn(|vector| {
        let (lane, element) = part(vector);
        (product.place)(lane, element)
    });
    let count = match product.arithmetic {
        Arithmetic::Floats { addend: Number::F16 | Number::Bf16, .. } => registers,
        _ => elements,
    };
    let addends = Registers::of(wave, [product.addend; 2], count)?;
    let before: [__m512i; WIDTH] = std::array::from_fn(|vector| {
        let (lane, element) = part(vector);
        let Place { register, bit, .. } = places[vector];
        let word = |register: usize| addends.vector(register, lane / WIDTH);
        match product.arithmetic {
            Arithmetic::Floats { addend: Number::F32, .. } => signed(word(element), &product.signs),
            Arithmetic::Floats { addend, .. } => {
                let short = _mm512_srlv_epi32(word(register), _mm512_set1_epi32(bit as i32));
                signed(widened(addend, short), &product.signs)
            }
            Arithmetic::Wrapping | Arithmetic::Saturating => word(element),
        }
    });
    let factors = Factors { rows: &places, a, b, signs: &product.signs };
    let sums = match product.arithmetic {
        Arithmetic::Wrapping => integers(&factors, before, |sum, more| _mm512_add_epi32(sum, more)),
        Arithmetic::Saturating => integers(&factors, before, |sum, more| clamped(sum, more)),
        Arithmetic::Floats { result, nans, .. } => {
            floats(&factors, before, nans).map(|sum| narrowed(result, sum))
        }
    };
    let mut results = [Row::ZERO; MOST_RESULTS];
    if let Arithmetic::Floats { keeps_others: true, .. } = product.arithmetic {
        for (register, result) in results[..registers].iter_mut().enumerate() {
            let others = !(0xffff << places[register].bit);
            let old = wave.row(op.destination.plus(register as u16));
            *result = Row(old.0.map(|word| word & others));
        }
    }
    for (vector, sum) in sums.into_iter().enumerate() {
        let (lane, _) = part(vector);
        let Place { register, bit, .. } = places[vector];
        let words = &mut results[register].0;
        let sum = _mm512_sllv_epi32(sum, _mm512_set1_epi32(bit as i32));
        let others = load(words, lane);
        store(words, lane, _mm512_or_si512(others, sum));
    }
    Some(results)
}

/// Reads A or B, all of whose elements are stored. Returns `None` if the wave has too few registers,
/// or a scaled element is not a single-precision number.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
#[inline]
fn dense<'a, K: Fn(usize, usize, usize) -> usize, P>(
    wave: &Wave,
    op: &Op,
    product: &WaveProduct<'_, K, P>,
    side: usize,
    room: &'a mut [Room],
) -> Option<Elements16<'a>> {
    let (lanes, each) = product.holders;
    let (elements, run) = (product.elements[side], product.runs[side]);
    let layout = Layout {
        lines: WIDTH,
        depth: product.depth,
        each,
        run,
        chunks: lanes / WIDTH,
        from: EACH,
        places: places(lanes / WIDTH, each / run, |group, number| {
            (product.k)(side, group * WIDTH, number * run)
        }),
    };
    let first = if side == 0 { product.first_of_a } else { 0 };
    let words = op.sources[side].words.map(|word| match word {
        Word::Row(row) => Word::Row(row.plus(first as u16)),
        word => word,
    });
    let registers = Registers::of(wave, words, (each * elements.bits()).div_ceil(32))?;
    let Some(Scales { block, factors }) = product.scales[side] else {
        return Some(Lines::read(room, &registers, elements, false, layout).values().of(0));
    };
    let depth = Lines::read(room, &registers, elements, false, layout).values().of(0).len();
    let mut inexact = 0;
    for (k, value) in room[..depth].iter_mut().enumerate() {
        // SAFETY: the lines have been read into this part of the buffer.
        let unscaled = vector(unsafe { value.assume_init_ref() });
        let scaled = _mm512_mul_ps(unscaled, vector(&factors[k / block]));
        // Elements and scales have few digits: their products are exact if they are normal.
        inexact |= changed_class(unscaled, scaled);
        put(value, scaled);
    }
    // SAFETY: as above.
    let values = unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), depth) };
    (inexact == 0).then_some(values)
}

/// Reads a sparse A, with zeros for the elements that it does not store.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")]
#[inline]
fn sparse<'a, K: Fn(usize, usize, usize) -> usize, P>(
    wave: &Wave,
    op: &Op,
    product: &WaveProduct<'_, K, P>,
    SparseRows { holders: (lanes, each), positions }: &SparseRows,
    rooms: [&'a mut [Room]; 2],
) -> Option<Elements16<'a>> {
    let elements = product.elements[0];
    let layout = Layout {
        lines: WIDTH,
        depth: product.depth,
        each: *each,
        run: 4,
        chunks: lanes / WIDTH,
        from: EACH,
        places: places(lanes / WIDTH, each / 4, |group, four| {
            (product.k)(0, group * WIDTH, 4 * four)
        }),
    };
    let count = (each / 2 * elements.bits()).div_ceil(32);
    let registers = Registers::of(wave, op.sources[0].words, count)?;
    let words = Registers::of(wave, [positions.word; 2], 1)?;
    let lines = Lines::read_sparse(rooms, &registers, elements, layout, (&words, *positions))?;
    Some(lines.values().of(0))
}

/// Applies the changes of signs to elements of C.
#[target_feature(enable = "avx512f")]
#[inline]
fn signed(bits: __m512i, signs: &Signs) -> __m512i {
    let kept = _mm512_andnot_si512(_mm512_set1_epi32(signs.cleared as i32), bits);
    _mm512_xor_si512(kept, _mm512_set1_epi32(signs.inverted as i32))
}

/// Converts numbers in the low halves of words to single precision.
#[target_feature(enable = "avx512f")]
#[inline]
fn widened(number: Number, words: __m512i) -> __m512i {
    match number {
        Number::F32 => words,
        Number::F16 => _mm512_castps_si512(_mm512_cvtph_ps(_mm512_cvtepi32_epi16(words))),
        Number::Bf16 => _mm512_slli_epi32::<16>(words),
    }
}

/// Rounds single precision to nearest even, into the low halves of words; NaNs become quiet and keep
/// the high bits of their payloads.
#[target_feature(enable = "avx512f")]
#[inline]
fn narrowed(number: Number, sums: __m512i) -> __m512i {
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    match number {
        Number::F32 => sums,
        Number::F16 => _mm512_cvtepu16_epi32(_mm512_cvtps_ph::<NEAREST>(_mm512_castsi512_ps(sums))),
        Number::Bf16 => {
            let high = _mm512_srli_epi32::<16>(sums);
            let is_odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
            let half = _mm512_add_epi32(is_odd, _mm512_set1_epi32(0x7fff));
            let rounded = _mm512_srli_epi32::<16>(_mm512_add_epi32(sums, half));
            let quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
            let sums = _mm512_castsi512_ps(sums);
            let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(sums, sums);
            _mm512_mask_mov_epi32(rounded, is_nan, quiet)
        }
    }
}

/// The factors of 16 vectors of sums.
struct Factors<'a> {
    /// The row of A of each vector.
    rows: &'a [Place; WIDTH],
    a: Elements16<'a>,
    b: Elements16<'a>,
    signs: &'a Signs,
}

impl Factors<'_> {
    /// Adds all products to sums in order, each fused with its sum.
    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    fn fuse(&self, mut sums: [__m512; WIDTH]) -> [__m512; WIDTH] {
        let [a, b] = self.signs.factors;
        let signs = [0, 1].map(|odd| _mm512_set1_ps(f32::from_bits(a[odd] ^ b[odd])));
        for (k, (left, right)) in self.a.iter().zip(self.b).enumerate() {
            let columns = _mm512_xor_ps(vector(right), signs[k % 2]);
            for (place, sum) in self.rows.iter().zip(&mut sums) {
                *sum = _mm512_fmadd_ps(_mm512_set1_ps(left[place.row % WIDTH]), columns, *sum);
            }
        }
        sums
    }

    /// Sums one element for which the first source NaN results.
    #[cold]
    fn sum_with_nan(&self, vector: usize, column: usize, before: f32) -> f32 {
        let row = self.rows[vector].row % WIDTH;
        let signed = |value: f32, side: usize, k: usize| {
            f32::from_bits(value.to_bits() ^ self.signs.factors[side][k % 2])
        };
        let products = self.a.iter().zip(self.b).enumerate();
        products.fold(before, |sum, (k, (left, right))| {
            let [a, b] = [signed(left[row], 0, k), signed(right[column], 1, k)];
            settle(a.mul_add(b, sum), [a, b, sum].into_iter().find_map(LaneValue::quiet_nan))
        })
    }
}

/// Bits of sums of floating-point products.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn floats(factors: &Factors<'_>, before: [__m512i; WIDTH], nans: Nans) -> [__m512i; WIDTH] {
    let sums = factors.fuse(before.map(|sum| _mm512_castsi512_ps(sum)));
    let mut result = sums.map(|sum| _mm512_castps_si512(sum));
    for (vector, sum) in sums.into_iter().enumerate() {
        let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(sum, sum);
        if is_nan == 0 {
            continue;
        }
        result[vector] = match nans {
            Nans::One => {
                _mm512_mask_mov_epi32(result[vector], is_nan, _mm512_set1_epi32(0x7fc0_0000))
            }
            Nans::FirstSource => {
                let [mut sums, mut initial] = [[0; WIDTH]; 2];
                store(&mut sums, 0, result[vector]);
                store(&mut initial, 0, before[vector]);
                for column in (0..WIDTH).filter(|column| is_nan >> column & 1 != 0) {
                    let initial = f32::from_bits(initial[column]);
                    sums[column] = factors.sum_with_nan(vector, column, initial).to_bits();
                }
                load(&sums, 0)
            }
        };
    }
    result
}

/// Sums of products of integers, which single precision represents.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn integers(
    factors: &Factors<'_>,
    before: [__m512i; WIDTH],
    add: impl Fn(__m512i, __m512i) -> __m512i,
) -> [__m512i; WIDTH] {
    let mut sums = before;
    for (sum, products) in sums.iter_mut().zip(factors.fuse([_mm512_setzero_ps(); WIDTH])) {
        *sum = add(*sum, _mm512_cvtps_epi32(products));
    }
    sums
}

/// Adds integers and clamps to 32 bits.
#[target_feature(enable = "avx512f")]
#[inline]
fn clamped(one: __m512i, other: __m512i) -> __m512i {
    let sum = _mm512_add_epi32(one, other);
    let differ = |a: __m512i| _mm512_xor_si512(a, sum);
    let overflow = _mm512_and_si512(differ(one), differ(other));
    let overflows = _mm512_cmplt_epi32_mask(overflow, _mm512_setzero_si512());
    let end = _mm512_xor_si512(_mm512_srai_epi32::<31>(one), _mm512_set1_epi32(i32::MAX));
    _mm512_mask_mov_epi32(sum, overflows, end)
}
