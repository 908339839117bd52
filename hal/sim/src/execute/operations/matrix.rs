//! Matrix multiply-add: D = A * B + C on small matrices spread over the lanes of a wave.
//!
//! The layout of matrices in registers is the one AMD published (ISA manual, "Matrix arithmetic
//! instructions"; AMD Matrix Instruction Calculator). EXEC has no effect. [`element`] has the
//! arithmetic of the elements and its differences between generations.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
mod element;
mod fused;
mod lines;
mod registers;
mod sizes;
mod tables;
mod vectors;
mod wide;

use super::row::{MatrixProduct, WholeWaveOperation};
use super::sources;
use crate::execute::matrix_sum::{Steps, SummedElement};
use crate::instruction::Op;
use crate::wave::{LANES, Level, Machine, Row, Wave};
use element::{Brain, Byte, Double, Element, Fused, Half, Pairwise, Single};
use flipwave_arch::{MatrixElement, ProductShape};
use flipwave_isa::{Float8, Generation, LaneMask};
#[cfg(target_arch = "x86_64")]
use registers::MOST_DEPTH;
use registers::{Elements, MOST_ELEMENTS, MOST_ROWS, joined, negation, permuted, row};

/// Rows of a table: name, element type, rows and columns, products per sum, number of matrices.
macro_rules! matrix_operations {
    ($(#[$documentation:meta])* $table:ident, unsettled $unsettled:expr;
     $($name:literal $element:ty, $size:literal $depth:literal $blocks:literal)*) => {
        $(#[$documentation])*
        static $table: &[WholeWaveOperation] = &[$(WholeWaveOperation {
            name: $name,
            sources: &[
                <$element as Element>::SOURCE,
                <$element as Element>::SOURCE,
                <$element as Element>::SUM,
            ],
            function: multiply_add::<$element, $size, $depth, $blocks>,
            unsettled: $unsettled,
            source: Some(sources::MATRICES),
            matrix: Some(MatrixProduct {
                shape: shape_of::<$element>($size, $depth, $blocks),
                sum: |wave, op, element, steps| {
                    let shape = Shape { size: $size, depth: $depth, blocks: $blocks };
                    sum_by_steps::<$element>(wave, op, shape, element, steps)
                },
            }),
        }),*];
    };
}

matrix_operations! {
    /// Operations that are identical on all generations.
    SHARED, unsettled None;
    "v_mfma_f32_32x32x1f32"       Single,      32  1  2
    "v_mfma_f32_16x16x1f32"       Single,      16  1  4
    "v_mfma_f32_4x4x1f32"         Single,       4  1 16
    "v_mfma_f32_32x32x2f32"       Single,      32  2  1
    "v_mfma_f32_16x16x4f32"       Single,      16  4  1
    "v_mfma_i32_32x32x4i8"        Byte,        32  4  2
    "v_mfma_i32_16x16x4i8"        Byte,        16  4  4
    "v_mfma_i32_4x4x4i8"          Byte,         4  4 16
    "v_mfma_i32_32x32x8i8"        Byte,        32  8  1
    "v_mfma_i32_16x16x16i8"       Byte,        16 16  1
    "v_mfma_f64_16x16x4f64"       Double,      16  4  1
    "v_mfma_f64_4x4x4f64"         Double,       4  4  4
}

/// Operations on half precision and bfloat16 that compute several matrices, parameterized by the
/// arithmetic of both formats, and additional rows.
macro_rules! short_operations {
    ($(#[$documentation:meta])* $table:ident: $half:ty, $brain:ty, $pair:ty,
     unsettled $unsettled:expr; $($others:tt)*) => {
        matrix_operations! {
            $(#[$documentation])*
            $table, unsettled $unsettled;
            "v_mfma_f32_32x32x4f16"       $half,   32  4  2
            "v_mfma_f32_16x16x4f16"       $half,   16  4  4
            "v_mfma_f32_4x4x4f16"         $half,    4  4 16
            "v_mfma_f32_32x32x2bf16"      $pair,   32  2  2
            "v_mfma_f32_16x16x2bf16"      $pair,   16  2  4
            "v_mfma_f32_4x4x2bf16"        $pair,    4  2 16
            "v_mfma_f32_32x32x4bf16"      $pair,   32  4  1
            "v_mfma_f32_16x16x8bf16"      $pair,   16  8  1
            "v_mfma_f32_32x32x4bf16_1k"   $brain,  32  4  2
            "v_mfma_f32_16x16x4bf16_1k"   $brain,  16  4  4
            "v_mfma_f32_4x4x4bf16_1k"     $brain,   4  4 16
            $($others)*
        }
    };
}

/// Operations on half precision and bfloat16 that compute one matrix, parameterized by the
/// arithmetic of half precision, of the bfloat16 operations new in gfx90a, and of those of gfx908.
macro_rules! pairwise_operations {
    ($(#[$documentation:meta])* $table:ident: $half:ty, $brain:ty, $pair:ty) => {
        short_operations! {
            $(#[$documentation])*
            $table: $half, $brain, $pair, unsettled None;
            "v_mfma_f32_32x32x8f16"       $half,   32  8  1
            "v_mfma_f32_16x16x16f16"      $half,   16 16  1
            "v_mfma_f32_32x32x8bf16_1k"   $brain,  32  8  1
            "v_mfma_f32_16x16x16bf16_1k"  $brain,  16 16  1
        }
    };
}

pairwise_operations! {
    /// gfx908, CDNA 1.
    CDNA1: Pairwise<Half, 4, false>, Pairwise<Brain, 4, false>, Pairwise<Brain, 2, false>
}
pairwise_operations! {
    /// gfx90a, CDNA 2.
    CDNA2: Pairwise<Half, 4, true>, Pairwise<Brain, 4, true>, Pairwise<Brain, 2, true>
}
short_operations! {
    /// gfx940 and gfx942, CDNA 3, which lacks the last operation.
    CDNA3: Fused<Half>, Fused<Brain>, Pairwise<Brain, 2, true>, unsettled None;
}
short_operations! {
    /// gfx950, CDNA 4, for which no measurement is published.
    CDNA4: Fused<Half>, Fused<Brain>, Pairwise<Brain, 2, true>, unsettled tables::DENSE;
}

/// Matrix operations of a machine.
pub(super) fn operations(machine: Machine) -> impl Iterator<Item = &'static WholeWaveOperation> {
    let (short, wide) = match (machine.generation, machine.float8) {
        (Generation::Gfx940, Float8::Fnuz) => (CDNA3, true),
        (Generation::Gfx940, Float8::Ocp) => (CDNA4, true),
        (Generation::Gfx90a, _) => (CDNA2, false),
        _ => (CDNA1, false),
    };
    let wide = wide.then(|| tables::operations(machine.float8));
    SHARED.iter().chain(short).chain(wide.into_iter().flatten())
}

/// D = A * B + C: compiled for each shape for hosts with fused multiply-add, and once for all
/// shapes of a type for the few x86-64 hosts without.
fn multiply_add<E: Element, const SIZE: usize, const DEPTH: usize, const BLOCKS: usize>(
    wave: &mut Wave,
    op: &Op,
) {
    let shape = Shape { size: SIZE, depth: DEPTH, blocks: BLOCKS };
    #[cfg(target_arch = "x86_64")]
    if let Some((elements, sum)) = E::VECTORS {
        let elements = [elements; 2];
        let (size, depth, blocks) = (SIZE, DEPTH, BLOCKS);
        let pattern = op.inst.modifiers.blgp;
        let product = avx512::Product { size, depth, blocks, elements, sum, pattern };
        if avx512::multiply_add(wave, op, &product, avx512::Form::Dense) {
            return;
        }
    }
    #[cfg(target_arch = "x86_64")]
    if wave.level == Level::Plain {
        compute_any::<E>(wave, op, shape);
    } else {
        // SAFETY: levels above the plain one have AVX2 and FMA.
        unsafe { multiply_add_avx2::<E, SIZE, DEPTH, BLOCKS>(wave, op) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    compute::<E, DEPTH>(wave, op, shape, true);
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
    let shape = Shape { size: SIZE, depth: DEPTH, blocks: BLOCKS };
    compute::<E, DEPTH>(wave, op, shape, true);
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn compute_any<E: Element>(wave: &mut Wave, op: &Op, shape: Shape) {
    compute::<E, MOST_DEPTH>(wave, op, shape, false);
}

/// Dimensions: `blocks` products of `size` by `depth` with `depth` by `size` elements.
#[derive(Clone, Copy)]
struct Shape {
    size: usize,
    depth: usize,
    blocks: usize,
}

/// Computes D. Element (i, k) of block b of A lies in lane `i + size * (b + blocks * (k / each))`,
/// at position `k % each` of the lane's `each` elements; B likewise with its column for i.
/// `saves_steps` enables the check whether sums can be computed in fewer steps.
#[inline(always)]
fn compute<E: Element, const ROOM: usize>(
    wave: &mut Wave,
    op: &Op,
    Shape { size, depth, blocks }: Shape,
    saves_steps: bool,
) {
    let each = depth * size * blocks / LANES;
    let a = elements::<E>(wave, op, 0, each);
    let b = permuted(&elements::<E>(wave, op, 1, each), op.inst.modifiers.blgp);
    let are_moderate = saves_steps && E::are_moderate(&a, &b);
    let (broadcast, chosen) = (op.inst.modifiers.cbsz & 7, usize::from(op.inst.modifiers.abid));
    let placement = Placement::of::<E>(size, blocks);
    let count = size * size * blocks / LANES;
    let holder = |i: usize, block: usize, k: usize| i + size * (block + blocks * (k / each));
    let mut left = [[E::Value::default(); LANES]; ROOM];
    let mut right = left;
    let (left, right) = (&mut left[..depth], &mut right[..depth]);
    let mut result = [Row::ZERO; MOST_ROWS];
    for index in 0..count {
        // Factors of each lane's sum. Neighbouring lanes have the same row, and the columns stay
        // the same within a block.
        for (k, left) in left.iter_mut().enumerate() {
            for (run, lanes) in left.chunks_mut(size).enumerate() {
                let (block, row, _) = placement.element(index, run * size);
                let block = ((block >> broadcast << broadcast) + chosen) % blocks;
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
        let sign = negation(op, 2);
        let mut sums = std::array::from_fn(|lane| E::initial(joined(&initial, lane) ^ sign));
        for (left, right) in left.chunks(E::GROUP).zip(right.chunks(E::GROUP)) {
            E::add_all(left, right, are_moderate, &mut sums);
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

/// Shape of a product, as its summation steps use it.
const fn shape_of<E: Element>(size: usize, depth: usize, blocks: usize) -> ProductShape {
    let group = if E::STEP < depth { E::STEP } else { depth };
    ProductShape {
        blocks: blocks as u8,
        group: group as u8,
        sum: E::SUM_TYPE,
        ..ProductShape::square(size, depth)
    }
}

/// Sums one element of the result of [`compute`], step by step.
fn sum_by_steps<E: Element>(
    wave: &Wave,
    op: &Op,
    Shape { size, depth, blocks }: Shape,
    element: MatrixElement,
    steps: &mut Steps<'_>,
) -> Option<SummedElement> {
    let [block, row, column] = [element.block, element.row, element.column].map(usize::from);
    let placement = Placement::of::<E>(size, blocks);
    let count = size * size * blocks / LANES;
    let mut places = (0..count).flat_map(|index| (0..LANES).map(move |lane| (index, lane)));
    let (index, lane) =
        places.find(|(index, lane)| placement.element(*index, *lane) == (block, row, column))?;
    let each = depth * size * blocks / LANES;
    let a = elements::<E>(wave, op, 0, each);
    let b = permuted(&elements::<E>(wave, op, 1, each), op.inst.modifiers.blgp);
    let (broadcast, chosen) = (op.inst.modifiers.cbsz & 7, usize::from(op.inst.modifiers.abid));
    let from = ((block >> broadcast << broadcast) + chosen) % blocks;
    let holder = |i: usize, block: usize, k: usize| i + size * (block + blocks * (k / each));
    let factors: Vec<[E::Value; 2]> = (0..depth)
        .map(|k| [a[holder(row, from, k)][k % each], b[holder(column, block, k)][k % each]])
        .collect();
    let initial = E::initial(joined(&sum_rows::<E>(wave, op, index), lane) ^ negation(op, 2));
    let value = E::bits(E::sum_by_steps(&factors, initial, steps));
    let row = op.destination.plus((index * E::SUM_WORDS) as u16);
    Some(SummedElement::words(row, lane, E::SUM_WORDS, value))
}

/// Reads a lane's elements of a source, which is one word or two.
#[inline(always)]
fn elements<E: Element>(wave: &Wave, op: &Op, source: usize, each: usize) -> Elements<E::Value> {
    let rows = op.sources[source].words.map(|word| row(wave, word));
    let sign = negation(op, source);
    let mut elements = [[E::Value::default(); MOST_ELEMENTS]; LANES];
    for (lane, values) in elements.iter_mut().enumerate() {
        let bits = joined(&rows, lane) ^ sign;
        for (at, value) in values[..each].iter_mut().enumerate() {
            *value = E::value(bits >> (E::BITS * at));
        }
    }
    elements
}

/// Words of C that hold the `index`-th element of each lane.
#[inline(always)]
fn sum_rows<E: Element>(wave: &Wave, op: &Op, index: usize) -> [Row; 2] {
    let word = |at: usize| match op.sources[2].row() {
        Some(first) => *wave.row(first.plus((index * E::SUM_WORDS + at) as u16)),
        None => row(wave, op.sources[2].words[at]),
    };
    [word(0), if E::SUM_WORDS == 2 { word(1) } else { Row::ZERO }]
}

/// Layout of the elements of C and D. Rows of a matrix occupy a few registers of a lane, then
/// continue in further groups of lanes, then in further registers. The blocks of 4 by 4 operations
/// lie in neighbouring lanes, the blocks of others in consecutive registers.
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
