//! Matrix multiply-add: D = A * B + C on small matrices spread over the lanes of a wave.
//!
//! How matrices lie in registers is AMD's published layout (ISA manual, "Matrix arithmetic
//! instructions"; AMD Matrix Instruction Calculator). EXEC does not matter.
//!
//! In what order and with what roundings the products are summed is not documented. It is taken
//! from published measurements of the hardware (Xie et al., "MMA-Sim: bit-accurate reference
//! model of tensor cores and matrix cores", 2025): single and double precision are chains of
//! fused multiply-adds that begin with C, in the order of k. Half precision and bfloat16 are
//! summed in groups of four (two for the `bf16` operations without `_1k`): the products of a
//! group pairwise, then the group's sum onto the sum so far, every sum rounded to single
//! precision. There, denormal sources read as plus zero and denormal sums become zero; single and
//! double precision keep denormals. The mode does not matter.
//!
//! Not settled by what is published: which NaN comes out (here the first source that is one), and
//! whether MODE's rounding reaches single and double precision (the measurements were made to
//! nearest even).

use super::WholeWaveOperation;
use super::binary16::to_f32;
use super::single;
use crate::lane_value::{Kind, LaneValue, settle};
use crate::op::{Op, Word};
use crate::vector::{Level, scalar_word};
use crate::wave::{LANES, Row, Wave};
use flipwave_isa::LaneMask;
use half::f16;

/// Rows of the table: name, element type, rows and columns, products per sum, matrices side by
/// side.
macro_rules! matrix_operations {
    ($($name:literal $element:ident $size:literal $depth:literal $blocks:literal)*) => {
        /// The operations.
        pub(super) static TABLE: &[WholeWaveOperation] = &[$(WholeWaveOperation {
            name: $name,
            sources: &[$element::SOURCE, $element::SOURCE, $element::SUM],
            function: multiply_add::<$element, $size, $depth, $blocks>,
        }),*];
    };
}

matrix_operations! {
    "v_mfma_f32_32x32x1f32"       Single      32  1  2
    "v_mfma_f32_16x16x1f32"       Single      16  1  4
    "v_mfma_f32_4x4x1f32"         Single       4  1 16
    "v_mfma_f32_32x32x2f32"       Single      32  2  1
    "v_mfma_f32_16x16x4f32"       Single      16  4  1
    "v_mfma_f32_32x32x4f16"       Half        32  4  2
    "v_mfma_f32_16x16x4f16"       Half        16  4  4
    "v_mfma_f32_4x4x4f16"         Half         4  4 16
    "v_mfma_f32_32x32x8f16"       Half        32  8  1
    "v_mfma_f32_16x16x16f16"      Half        16 16  1
    "v_mfma_i32_32x32x4i8"        Byte        32  4  2
    "v_mfma_i32_16x16x4i8"        Byte        16  4  4
    "v_mfma_i32_4x4x4i8"          Byte         4  4 16
    "v_mfma_i32_32x32x8i8"        Byte        32  8  1
    "v_mfma_i32_16x16x16i8"       Byte        16 16  1
    "v_mfma_f32_32x32x2bf16"      BrainPair   32  2  2
    "v_mfma_f32_16x16x2bf16"      BrainPair   16  2  4
    "v_mfma_f32_4x4x2bf16"        BrainPair    4  2 16
    "v_mfma_f32_32x32x4bf16"      BrainPair   32  4  1
    "v_mfma_f32_16x16x8bf16"      BrainPair   16  8  1
    "v_mfma_f32_32x32x4bf16_1k"   Brain       32  4  2
    "v_mfma_f32_16x16x4bf16_1k"   Brain       16  4  4
    "v_mfma_f32_4x4x4bf16_1k"     Brain        4  4 16
    "v_mfma_f32_32x32x8bf16_1k"   Brain       32  8  1
    "v_mfma_f32_16x16x16bf16_1k"  Brain       16 16  1
    "v_mfma_f64_16x16x4f64"       Double      16  4  1
    "v_mfma_f64_4x4x4f64"         Double       4  4  4
}

/// The arithmetic of an element type.
trait Element {
    /// An element of A or B.
    type Value: Copy + Default;
    /// An element of C or D.
    type Sum: Copy;
    /// How a lane's share of A or B is read.
    const SOURCE: Kind;
    /// How a lane's share of C is read.
    const SUM: Kind;
    /// Bits of an element of A or B.
    const BITS: usize;
    /// Words of an element of C or D.
    const SUM_WORDS: usize;
    /// Consecutive rows of C and D that a lane holds.
    const ROWS: usize;
    /// Products that are summed at a time.
    const GROUP: usize;

    /// The element of these bits.
    fn value(bits: u64) -> Self::Value;
    /// The element of C of these bits.
    fn initial(bits: u64) -> Self::Sum;
    /// A group of products added to a sum.
    fn add(a: &[Self::Value], b: &[Self::Value], sum: Self::Sum) -> Self::Sum;
    /// The same in all lanes; `a` and `b` have the products' factors one behind the other.
    #[inline(always)]
    fn add_all(a: &[Lanes<Self::Value>], b: &[Lanes<Self::Value>], sums: &mut Lanes<Self::Sum>) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            let of_lane = |factors: &[Lanes<Self::Value>]| -> [Self::Value; MOST_GROUP] {
                std::array::from_fn(|at| factors.get(at).map_or(Default::default(), |f| f[lane]))
            };
            *sum = Self::add(&of_lane(a)[..a.len()], &of_lane(b)[..b.len()], *sum);
        }
    }
    /// The bits of an element of D.
    fn bits(sum: Self::Sum) -> u64;
}

/// Single precision.
struct Single;

impl Element for Single {
    type Value = f32;
    type Sum = f32;
    const SOURCE: Kind = Kind::F32;
    const SUM: Kind = Kind::F32;
    const BITS: usize = 32;
    const SUM_WORDS: usize = 1;
    const ROWS: usize = 4;
    const GROUP: usize = 1;

    #[inline(always)]
    fn value(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn initial(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn add(a: &[f32], b: &[f32], sum: f32) -> f32 {
        settled(a[0].mul_add(b[0], sum), [a[0], b[0], sum])
    }
    #[inline(always)]
    fn add_all(a: &[Lanes<f32>], b: &[Lanes<f32>], sums: &mut Lanes<f32>) {
        for (a, b) in a.iter().zip(b) {
            let before = *sums;
            let mut is_nan = false;
            for lane in 0..LANES {
                sums[lane] = a[lane].mul_add(b[lane], before[lane]);
                is_nan |= sums[lane].is_nan();
            }
            if is_nan {
                *sums = std::array::from_fn(|lane| Self::add(&[a[lane]], &[b[lane]], before[lane]));
            }
        }
    }
    #[inline(always)]
    fn bits(sum: f32) -> u64 {
        sum.to_bits().into()
    }
}

/// Double precision.
struct Double;

impl Element for Double {
    type Value = f64;
    type Sum = f64;
    const SOURCE: Kind = Kind::F64;
    const SUM: Kind = Kind::F64;
    const BITS: usize = 64;
    const SUM_WORDS: usize = 2;
    const ROWS: usize = 1;
    const GROUP: usize = 1;

    #[inline(always)]
    fn value(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn initial(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn add(a: &[f64], b: &[f64], sum: f64) -> f64 {
        let first_nan = [a[0], b[0], sum].into_iter().find_map(LaneValue::quiet_nan);
        settle(a[0].mul_add(b[0], sum), first_nan)
    }
    #[inline(always)]
    fn bits(sum: f64) -> u64 {
        sum.to_bits()
    }
}

/// 8-bit integers.
struct Byte;

impl Element for Byte {
    type Value = i32;
    type Sum = i32;
    const SOURCE: Kind = Kind::Word;
    const SUM: Kind = Kind::Word;
    const BITS: usize = 8;
    const SUM_WORDS: usize = 1;
    const ROWS: usize = 4;
    const GROUP: usize = 4;

    #[inline(always)]
    fn value(bits: u64) -> i32 {
        (bits as i8).into()
    }
    #[inline(always)]
    fn initial(bits: u64) -> i32 {
        bits as i32
    }
    #[inline(always)]
    fn add(a: &[i32], b: &[i32], sum: i32) -> i32 {
        a.iter().zip(b).fold(sum, |sum, (a, b)| sum.wrapping_add(a * b))
    }
    #[inline(always)]
    fn bits(sum: i32) -> u64 {
        (sum as u32).into()
    }
}

/// The element types whose products are exact in single precision and summed pairwise.
macro_rules! pairwise_element {
    ($(#[$documentation:meta])* $element:ident, $source:ident, $group:literal,
     $bits:ident => $value:expr) => {
        $(#[$documentation])*
        struct $element;

        impl Element for $element {
            type Value = f32;
            type Sum = f32;
            const SOURCE: Kind = Kind::$source;
            const SUM: Kind = Kind::F32;
            const BITS: usize = 16;
            const SUM_WORDS: usize = 1;
            const ROWS: usize = 4;
            const GROUP: usize = $group;

            #[inline(always)]
            fn value($bits: u64) -> f32 {
                $value
            }
            #[inline(always)]
            fn initial(bits: u64) -> f32 {
                single::flush(f32::from_bits(bits as u32)) + 0.0
            }
            #[inline(always)]
            fn add(a: &[f32], b: &[f32], sum: f32) -> f32 {
                flushed_sum(sum, pairwise(a, b))
            }
            #[inline(always)]
            fn bits(sum: f32) -> u64 {
                sum.to_bits().into()
            }
        }
    };
}

pairwise_element!(
    /// Half precision. A denormal, whose exponent is zero, reads as plus zero.
    Half, Wide, 4,
    bits => if bits & 0x7c00 == 0 { 0.0 } else { to_f32(f16::from_bits(bits as u16)) }
);
pairwise_element!(
    /// Bfloat16 in fours.
    Brain, Wide, 4, bits => brain(bits)
);
pairwise_element!(
    /// Bfloat16 in twos.
    BrainPair, Word, 2, bits => brain(bits)
);

/// A bfloat16 number: the high half of a single-precision one. Denormals read as plus zero.
#[inline(always)]
fn brain(bits: u64) -> f32 {
    if bits & 0x7f80 == 0 { 0.0 } else { f32::from_bits((bits as u32) << 16) }
}

/// The first source's NaN instead of any other.
#[inline(always)]
fn settled(result: f32, sources: [f32; 3]) -> f32 {
    settle(result, sources.into_iter().find_map(LaneValue::quiet_nan))
}

/// A sum without denormals.
#[inline(always)]
fn flushed_sum(a: f32, b: f32) -> f32 {
    settled(single::flush(a + b), [a, b, 0.0])
}

/// A product without denormals. Adding zero takes the sign from a zero.
#[inline(always)]
fn flushed_product(a: f32, b: f32) -> f32 {
    settled(single::flush(a * b + 0.0), [a, b, 0.0])
}

/// The sum of two or four products.
#[inline(always)]
fn pairwise(a: &[f32], b: &[f32]) -> f32 {
    let pair = |at: usize| {
        flushed_sum(flushed_product(a[at], b[at]), flushed_product(a[at + 1], b[at + 1]))
    };
    if a.len() == 2 { pair(0) } else { flushed_sum(pair(0), pair(2)) }
}

/// The most elements of A or B that a lane holds.
const MOST_ELEMENTS: usize = 4;
/// The most words of C or D that a lane holds.
const MOST_ROWS: usize = 32;

/// What each lane holds of A or B.
type Elements<T> = [[T; MOST_ELEMENTS]; LANES];

/// A value of each lane.
type Lanes<T> = [T; LANES];

/// Most products that are summed at a time.
const MOST_GROUP: usize = 4;

/// D = A * B + C, compiled for hosts with and without fused multiply-add.
fn multiply_add<E: Element, const SIZE: usize, const DEPTH: usize, const BLOCKS: usize>(
    wave: &mut Wave,
    op: &Op,
) {
    #[cfg(target_arch = "x86_64")]
    if wave.level != Level::Plain {
        // SAFETY: levels above the plain one have AVX2 and FMA.
        unsafe { multiply_add_avx2::<E, SIZE, DEPTH, BLOCKS>(wave, op) };
        return;
    }
    compute::<E, SIZE, DEPTH, BLOCKS>(wave, op);
}

/// # Safety
/// The host has AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn multiply_add_avx2<
    E: Element,
    const SIZE: usize,
    const DEPTH: usize,
    const BLOCKS: usize,
>(
    wave: &mut Wave,
    op: &Op,
) {
    compute::<E, SIZE, DEPTH, BLOCKS>(wave, op);
}

/// Element (i, k) of block b of A lies in lane `i + SIZE * (b + BLOCKS * (k / each))`, the
/// `k % each`-th of the lane's `each` elements; B likewise with its column for i.
#[inline(always)]
fn compute<E: Element, const SIZE: usize, const DEPTH: usize, const BLOCKS: usize>(
    wave: &mut Wave,
    op: &Op,
) {
    let each = DEPTH * SIZE * BLOCKS / LANES;
    let a = elements::<E>(wave, op, 0, each);
    let b = permuted(&elements::<E>(wave, op, 1, each), op.inst.modifiers.blgp);
    let (broadcast, chosen) = (op.inst.modifiers.cbsz & 7, usize::from(op.inst.modifiers.abid));
    let placement = Placement::of::<E>(SIZE, BLOCKS);
    let count = SIZE * SIZE * BLOCKS / LANES;
    let holder = |i: usize, block: usize, k: usize| i + SIZE * (block + BLOCKS * (k / each));
    let mut left = [[E::Value::default(); LANES]; DEPTH];
    let mut right = left;
    let mut result = [Row::ZERO; MOST_ROWS];
    for index in 0..count {
        // The factors of each lane's sum. Lanes side by side have the same row, and the columns
        // stay the same as long as the block does.
        for (k, left) in left.iter_mut().enumerate() {
            for (run, lanes) in left.chunks_mut(SIZE).enumerate() {
                let (block, row, _) = placement.element(index, run * SIZE);
                let block = ((block >> broadcast << broadcast) + chosen) % BLOCKS;
                lanes.fill(a[holder(row, block, k)][k % each]);
            }
        }
        if index % placement.registers == 0 {
            for (k, right) in right.iter_mut().enumerate() {
                for (lane, value) in right.iter_mut().enumerate() {
                    let (block, _, column) = placement.element(index, lane);
                    *value = b[holder(column, block, k)][k % each];
                }
            }
        }
        let initial = sum_rows::<E>(wave, op, index);
        let mut sums = std::array::from_fn(|lane| E::initial(joined(&initial, lane)));
        for (left, right) in left.chunks(E::GROUP).zip(right.chunks(E::GROUP)) {
            E::add_all(left, right, &mut sums);
        }
        for (lane, sum) in sums.into_iter().enumerate() {
            let bits = E::bits(sum);
            result[index * E::SUM_WORDS].0[lane] = bits as u32;
            if E::SUM_WORDS == 2 {
                result[index * 2 + 1].0[lane] = (bits >> 32) as u32;
            }
        }
    }
    for (word, row) in result[..count * E::SUM_WORDS].iter().enumerate() {
        *wave.row_mut(op.destination.plus(word as u16)) = *row;
    }
    wave.written_lanes = Some(LaneMask::FULL);
}

/// A lane's elements of a source, which is one word or two.
#[inline(always)]
fn elements<E: Element>(wave: &Wave, op: &Op, source: usize, each: usize) -> Elements<E::Value> {
    let rows = op.sources[source].words.map(|word| row(wave, word));
    let mut elements = [[E::Value::default(); MOST_ELEMENTS]; LANES];
    for (lane, values) in elements.iter_mut().enumerate() {
        let bits = joined(&rows, lane);
        for (at, value) in values[..each].iter_mut().enumerate() {
            *value = E::value(bits >> (E::BITS * at));
        }
    }
    elements
}

/// The words of C that hold the `index`-th element of each lane.
#[inline(always)]
fn sum_rows<E: Element>(wave: &Wave, op: &Op, index: usize) -> [Row; 2] {
    let word = |at: usize| match op.sources[2].row() {
        Some(first) => *wave.row(first.plus((index * E::SUM_WORDS + at) as u16)),
        None => row(wave, op.sources[2].words[at]),
    };
    [word(0), if E::SUM_WORDS == 2 { word(1) } else { Row::ZERO }]
}

/// A word of a source in all lanes.
#[inline(always)]
fn row(wave: &Wave, word: Word) -> Row {
    match word {
        Word::Row(row) => *wave.row(row),
        other => Row::splat(scalar_word(wave, other)),
    }
}

/// A lane's two words.
#[inline(always)]
fn joined(rows: &[Row; 2], lane: usize) -> u64 {
    u64::from(rows[0].0[lane]) | u64::from(rows[1].0[lane]) << 32
}

/// The lanes of B as `blgp` rearranges them (ISA manual, "BLGP").
#[inline(always)]
fn permuted<T: Copy>(elements: &Elements<T>, pattern: u8) -> Elements<T> {
    std::array::from_fn(|lane| {
        elements[match pattern & 7 {
            0 => lane,
            1 => lane % 32,
            2 => lane % 32 + 32,
            3 => (lane + 16) % LANES,
            pattern => lane % 16 + 16 * usize::from(pattern - 4),
        }]
    })
}

/// Where elements of C and D lie. Rows of a matrix go down the registers of a lane a few at a
/// time, then to further groups of lanes, then down the registers again. The blocks of 4 by 4
/// operations lie in lanes side by side, those of others in registers one after the other.
struct Placement {
    size: usize,
    rows: usize,
    blocks_in_lanes: usize,
    groups: usize,
    registers: usize,
}

impl Placement {
    #[inline(always)]
    fn of<E: Element>(size: usize, blocks: usize) -> Placement {
        let blocks_in_lanes = if size == 4 { blocks } else { 1 };
        Placement {
            size,
            rows: E::ROWS,
            blocks_in_lanes,
            groups: LANES / (size * blocks_in_lanes),
            registers: size * size * blocks_in_lanes / LANES,
        }
    }

    /// Block, row and column of a lane's `index`-th element.
    #[inline(always)]
    fn element(&self, index: usize, lane: usize) -> (usize, usize, usize) {
        let column = lane % self.size;
        let lane_group = lane / self.size;
        let within = index % self.registers;
        let row_group = lane_group / self.blocks_in_lanes + self.groups * (within / self.rows);
        let block =
            lane_group % self.blocks_in_lanes + self.blocks_in_lanes * (index / self.registers);
        (block, within % self.rows + self.rows * row_group, column)
    }
}
