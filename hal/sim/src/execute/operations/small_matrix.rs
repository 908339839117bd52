//! Matrix products of gfx1250 whose elements have eight, six or four bits, where the instruction
//! selects the format of each matrix, and with scales: D = A * B + C with 128 products per sum.
//!
//! Each half of the wave holds alternating runs of k, of 16 elements of a byte or of 32 smaller
//! ones (CDNA 5 ISA, 7.12, as public tests restate it; AMD's rocjitsu,
//! `wmma_block_scaled_input_loc`). A scale is the exponent of a power of two for 32 elements of a
//! row of A or a column of B, one in each byte of a register, or for 16 elements in two registers;
//! a modifier selects the half wave of 16 lanes that holds them. Scales of 32 rows are in as many lanes
//! (MLIR, `amdgpu.scaled_wmma`; AMD's rocjitsu). Scales can also have mantissas, in E5M3 and E4M3.
//!
//! The order and the roundings of the summation are not published: here each product is added in
//! the order of k, beginning with C, and each sum is rounded to single precision.

use super::row::{MatrixProduct, WholeWaveOperation};
use crate::execute::lane::Kind;
use crate::execute::lane::small_float::{SmallFloat, e5m3, power};
use crate::execute::matrix_sum::{Steps, SummedElement};
use crate::execute::operand::scalar_word;
use crate::instruction::{Op, Word};
#[cfg(target_arch = "x86_64")]
use crate::wave::Row;
use crate::wave::{LANES, ScalarIndex, Wave};
use flipwave_arch::{MatrixElement, ProductShape};
use flipwave_isa::{Float8, ScaleFormat};

/// Columns of B, and rows of A per eight registers.
const SIZE: usize = 16;
/// Products per sum.
const DEPTH: usize = 128;
/// Registers of 16 rows of D.
const REGISTERS: usize = SIZE / 2;
/// The fewest products that share a scale.
#[cfg(target_arch = "x86_64")]
const LEAST_BLOCK: usize = 16;

const SOURCES: &[Kind] = &[Kind::Word; 5];

/// A row: name, rows and formats, and the products that share a scale, if there are scales.
macro_rules! product {
    ($name:literal, $rows:expr, $shape:expr, $block:expr) => {
        WholeWaveOperation {
            unsettled: Some("sums in the order of k, each rounded once, one NaN for all"),
            matrix: Some(MatrixProduct {
                shape: ProductShape { rows: $rows as u8, ..ProductShape::square(SIZE, DEPTH) },
                sum: |wave, op, element, steps| {
                    Some(sum_by_steps(wave, op, &$shape(op), $block, element, steps))
                },
            }),
            ..WholeWaveOperation::new($name, SOURCES, |wave, op| {
                multiply_add(wave, op, $shape(op), $block);
            })
        }
    };
}

/// Table of operations.
pub(super) static TABLE: &[WholeWaveOperation] = &[
    product!("v_wmma_f32_16x16x128_f8f6f4", SIZE, chosen, None),
    product!("v_wmma_scale_f32_16x16x128_f8f6f4", SIZE, chosen, Some(32)),
    product!("v_wmma_scale16_f32_16x16x128_f8f6f4", SIZE, chosen, Some(16)),
    product!("v_wmma_f32_32x16x128_f4", 2 * SIZE, tall, None),
    product!("v_wmma_scale_f32_32x16x128_f4", 2 * SIZE, tall, Some(32)),
    product!("v_wmma_scale16_f32_32x16x128_f4", 2 * SIZE, tall, Some(16)),
];

/// Rows and formats of a product.
struct Shape {
    /// Rows of A and of D.
    rows: usize,
    /// Formats of A and of B.
    formats: [SmallFloat; 2],
}

impl Shape {
    /// Lanes that hold the scales of A (side 0) or of B.
    fn holders(&self, side: usize) -> Holders {
        if side == 0 && self.rows > SIZE { Holders::AllLanes } else { Holders::HalfWave }
    }
}

/// Number of consecutive elements of a lane with consecutive k.
fn run(format: SmallFloat) -> usize {
    if format.bits == 8 { 16 } else { 32 }
}

/// Shape with the formats that the instruction selects.
fn chosen(op: &Op) -> Shape {
    let format = |number: u8| match number {
        0 => SmallFloat::fp8(Float8::Ocp),
        1 => SmallFloat::bf8(Float8::Ocp),
        2 => SmallFloat::FP6,
        3 => SmallFloat::BF6,
        _ => SmallFloat::FP4,
    };
    let modifiers = &op.inst.modifiers;
    Shape { rows: SIZE, formats: [format(modifiers.cbsz), format(modifiers.blgp)] }
}

/// Shape of the operation with twice as many rows.
fn tall(_: &Op) -> Shape {
    Shape { rows: 2 * SIZE, formats: [SmallFloat::FP4; 2] }
}

fn multiply_add(wave: &mut Wave, op: &Op, shape: Shape, block: Option<usize>) {
    #[cfg(target_arch = "x86_64")]
    if is_made_in_vectors(wave, op, &shape, block) {
        return;
    }
    let a: Vec<[f64; DEPTH]> =
        (0..shape.rows).map(|row| elements(wave, op, 0, &shape, row, block)).collect();
    let b: Vec<[f64; DEPTH]> =
        (0..SIZE).map(|column| elements(wave, op, 1, &shape, column, block)).collect();
    let registers = shape.rows / 2;
    let mut results = vec![[0u32; LANES]; registers];
    for lane in 0..2 * SIZE {
        for (register, result) in results.iter_mut().enumerate() {
            let row = SIZE * (register / 8) + 8 * (lane / SIZE) + register % 8;
            let factors = a[row].iter().zip(&b[lane % SIZE]);
            let sum = factors.fold(initial(wave, op, register, lane), |sum, (a, b)| {
                (f64::from(sum) + a * b) as f32
            });
            result[lane] = bits(sum);
        }
    }
    for (register, words) in results.iter().enumerate() {
        let row = wave.row_mut(op.destination.plus(register as u16));
        row.0[..2 * SIZE].copy_from_slice(&words[..2 * SIZE]);
    }
    wave.written_lanes = Some(wave.machine.all_lanes());
}

/// Computes D with vectors; returns `false` without effect if the host does not have them, or a
/// scaled element is not a single-precision number.
#[cfg(target_arch = "x86_64")]
fn is_made_in_vectors(wave: &mut Wave, op: &Op, shape: &Shape, block: Option<usize>) -> bool {
    use super::matrix::avx512::write_wave;
    let parts = 0..shape.rows / SIZE;
    let results: Option<Vec<_>> =
        parts.map(|part| part_in_vectors(wave, op, shape, block, part)).collect();
    let Some(results) = results else { return false };
    for (part, result) in results.iter().enumerate() {
        write_wave(wave, op, part * REGISTERS, result);
    }
    true
}

/// Computes 16 rows of D with vectors.
#[cfg(target_arch = "x86_64")]
fn part_in_vectors(
    wave: &Wave,
    op: &Op,
    shape: &Shape,
    block: Option<usize>,
    part: usize,
) -> Option<[Row; REGISTERS]> {
    use super::matrix::avx512::{
        Arithmetic, Elements, Nans, Number, Place, Results, Scales, Signs, WaveProduct,
        multiply_wave,
    };
    let mut factors = [[[1.0; SIZE]; DEPTH / LEAST_BLOCK]; 2];
    let scales = match block {
        None => [None; 2],
        Some(block) => {
            for (side, factors) in factors.iter_mut().enumerate() {
                let (holders, first) =
                    (shape.holders(side), if side == 0 { part * SIZE } else { 0 });
                for (number, factors) in factors[..DEPTH / block].iter_mut().enumerate() {
                    *factors = std::array::from_fn(|line| {
                        scale(wave, op, side, first + line, number, holders) as f32
                    });
                }
            }
            factors.each_ref().map(|factors| Some(Scales { block, factors }))
        }
    };
    let runs = shape.formats.map(run);
    let sign = |modifier: u8| u32::from(modifier >> 2 & 1) << 31;
    let modifiers = &op.inst.modifiers;
    let product = WaveProduct {
        elements: shape.formats.map(Elements::Small),
        first_of_a: part * REGISTERS,
        depth: DEPTH,
        holders: (2 * SIZE, DEPTH / 2),
        runs,
        k: |side: usize, lane: usize, element: usize| {
            let run = runs[side];
            element % run + run * (lane / SIZE + 2 * (element / run))
        },
        sparse: None,
        scales,
        signs: Signs {
            factors: [[0; 2]; 2],
            cleared: sign(modifiers.neg_hi),
            inverted: sign(modifiers.neg_lo),
        },
        arithmetic: Arithmetic::Floats {
            addend: Number::F32,
            result: Number::F32,
            nans: Nans::One,
            keeps_others: false,
        },
        addend: match op.sources[2].words[0] {
            Word::Row(row) => Word::Row(row.plus((part * REGISTERS) as u16)),
            word => word,
        },
        results: Results { elements: REGISTERS, registers: REGISTERS },
        place: |lane: usize, register: usize| Place {
            row: REGISTERS * (lane / SIZE) + register,
            register,
            bit: 0,
        },
    };
    multiply_wave(wave, op, &product)
}

/// Sums one element of the result of [`multiply_add`], step by step.
fn sum_by_steps(
    wave: &Wave,
    op: &Op,
    shape: &Shape,
    block: Option<usize>,
    MatrixElement { row, column, .. }: MatrixElement,
    steps: &mut Steps<'_>,
) -> SummedElement {
    let [row, column] = [row, column].map(usize::from);
    let a = elements(wave, op, 0, shape, row, block);
    let b = elements(wave, op, 1, shape, column, block);
    let register = 8 * (row / SIZE) + row % 8;
    let lane = column + SIZE * (row % SIZE / 8);
    let mut sum = steps.begin(initial(wave, op, register, lane));
    for (step, (a, b)) in a.iter().zip(&b).enumerate() {
        let product = a * b;
        let changed = steps.product(step, f32::from_bits(bits(product as f32)));
        sum = (f64::from(sum) + changed.map_or(product, f64::from)) as f32;
        sum = steps.sum(step, f32::from_bits(bits(sum)));
    }
    let first = op.destination.plus(register as u16);
    SummedElement::words(first, lane, 1, bits(sum).into())
}

/// Bits of a sum; there is a single NaN.
fn bits(sum: f32) -> u32 {
    if sum.is_nan() { 0x7fc0_0000 } else { sum.to_bits() }
}

/// Reads an element of C: `neg_hi` takes its absolute value, `neg_lo` negates it.
fn initial(wave: &Wave, op: &Op, register: usize, lane: usize) -> f32 {
    let bits = match op.sources[2].words[0] {
        Word::Row(row) => wave.row(row.plus(register as u16)).0[lane],
        word => scalar_word(wave, word),
    };
    let modifiers = &op.inst.modifiers;
    let value = f32::from_bits(bits);
    let value = if modifiers.neg_hi >> 2 & 1 != 0 { value.abs() } else { value };
    if modifiers.neg_lo >> 2 & 1 != 0 { -value } else { value }
}

/// Reads a scaled row of A or column of B.
fn elements(
    wave: &Wave,
    op: &Op,
    source: usize,
    shape: &Shape,
    index: usize,
    block: Option<usize>,
) -> [f64; DEPTH] {
    let format = shape.formats[source];
    let run = run(format);
    let bits = format.bits as usize;
    let first = REGISTERS * (index / SIZE);
    let holders = shape.holders(source);
    std::array::from_fn(|k| {
        let lane = index % SIZE + SIZE * (k / run % 2);
        let at = (k / (2 * run) * run + k % run) * bits;
        let word = |number: usize| match op.sources[source].row() {
            Some(row) => u64::from(wave.row(row.plus((first + number) as u16)).0[lane]),
            None => 0,
        };
        let pair = word(at / 32) | if at % 32 + bits > 32 { word(at / 32 + 1) << 32 } else { 0 };
        let element = f64::from(format.decode((pair >> (at % 32)) as u32 & ((1 << bits) - 1)));
        match block {
            Some(block) => element * scale(wave, op, source, index, k / block, holders),
            None => element,
        }
    })
}

/// Lanes that hold the scales of a matrix.
#[derive(Clone, Copy, PartialEq)]
enum Holders {
    /// Sixteen lanes, which a modifier selects.
    HalfWave,
    /// One lane per row of the matrix.
    AllLanes,
}

/// Scale of a block of a row of A or of a column of B.
fn scale(wave: &Wave, op: &Op, source: usize, index: usize, block: usize, holders: Holders) -> f64 {
    let lane = match holders {
        Holders::HalfWave => {
            index % SIZE + SIZE * usize::from(op.inst.modifiers.scale_rows[source])
        }
        Holders::AllLanes => index,
    };
    let word = match op.sources[3].words[source] {
        Word::Row(row) => wave.row(row.plus((block / 4) as u16)).0[lane],
        Word::Scalar(ScalarIndex(first)) => {
            wave.scalar(ScalarIndex(first.saturating_add((block / 4) as u8)))
        }
        word => scalar_word(wave, word),
    };
    let bits = word >> (8 * (block % 4)) & 0xff;
    match op.inst.modifiers.scale_formats[source] {
        ScaleFormat::E8 if bits == 0xff => f64::NAN,
        ScaleFormat::E8 => power(bits as i32 - 127),
        ScaleFormat::E5M3 => e5m3(bits).into(),
        ScaleFormat::E4M3 => SmallFloat::fp8(Float8::Ocp).decode(bits).into(),
    }
}
