//! Matrix operations, checked against plain matrix products with the element layouts of AMD's
//! tables.

mod generations;
mod levels;
mod steps;
mod sums;
pub mod wide;

use super::{LANES, MODES, Random, control, levels};
use crate::execute::operations::find_whole;
use crate::instruction::{Op, Run, Source, Word};
use crate::tests::bench::op;
use crate::wave::{Machine, RowIndex, Wave};
use flipwave_isa::{Generation, LaneMask};
use half::f16;

/// Type of the elements, as it appears in instruction names.
#[derive(Clone, Copy, PartialEq)]
enum Elements {
    F32,
    F16,
    Bf16,
    I8,
    F64,
}

/// Name, elements, size, depth, blocks.
type Shape = (&'static str, Elements, usize, usize, usize);

const SHAPES: &[Shape] = &[
    ("v_mfma_f32_32x32x1f32", Elements::F32, 32, 1, 2),
    ("v_mfma_f32_16x16x1f32", Elements::F32, 16, 1, 4),
    ("v_mfma_f32_4x4x1f32", Elements::F32, 4, 1, 16),
    ("v_mfma_f32_32x32x2f32", Elements::F32, 32, 2, 1),
    ("v_mfma_f32_16x16x4f32", Elements::F32, 16, 4, 1),
    ("v_mfma_f32_32x32x4f16", Elements::F16, 32, 4, 2),
    ("v_mfma_f32_16x16x4f16", Elements::F16, 16, 4, 4),
    ("v_mfma_f32_4x4x4f16", Elements::F16, 4, 4, 16),
    ("v_mfma_f32_32x32x8f16", Elements::F16, 32, 8, 1),
    ("v_mfma_f32_16x16x16f16", Elements::F16, 16, 16, 1),
    ("v_mfma_i32_32x32x4i8", Elements::I8, 32, 4, 2),
    ("v_mfma_i32_16x16x4i8", Elements::I8, 16, 4, 4),
    ("v_mfma_i32_4x4x4i8", Elements::I8, 4, 4, 16),
    ("v_mfma_i32_32x32x8i8", Elements::I8, 32, 8, 1),
    ("v_mfma_i32_16x16x16i8", Elements::I8, 16, 16, 1),
    ("v_mfma_f32_32x32x2bf16", Elements::Bf16, 32, 2, 2),
    ("v_mfma_f32_16x16x2bf16", Elements::Bf16, 16, 2, 4),
    ("v_mfma_f32_4x4x2bf16", Elements::Bf16, 4, 2, 16),
    ("v_mfma_f32_32x32x4bf16", Elements::Bf16, 32, 4, 1),
    ("v_mfma_f32_16x16x8bf16", Elements::Bf16, 16, 8, 1),
    ("v_mfma_f32_32x32x4bf16_1k", Elements::Bf16, 32, 4, 2),
    ("v_mfma_f32_16x16x4bf16_1k", Elements::Bf16, 16, 4, 4),
    ("v_mfma_f32_4x4x4bf16_1k", Elements::Bf16, 4, 4, 16),
    ("v_mfma_f32_32x32x8bf16_1k", Elements::Bf16, 32, 8, 1),
    ("v_mfma_f32_16x16x16bf16_1k", Elements::Bf16, 16, 16, 1),
    ("v_mfma_f64_16x16x4f64", Elements::F64, 16, 4, 1),
    ("v_mfma_f64_4x4x4f64", Elements::F64, 4, 4, 4),
];

/// Returns the machine of a processor.
pub fn machine(processor: &str) -> Machine {
    Machine::new(&processor.parse().expect("a target"), 64)
}

const A: u16 = 0;
const B: u16 = 8;
const C: u16 = 40;
const D: u16 = 100;

/// Writes a small whole number, which all types and sums represent exactly, at a bit of a lane.
fn put(wave: &mut Wave, first: u16, lane: usize, bit: usize, elements: Elements, value: i32) {
    let bits: u64 = match elements {
        Elements::F32 => (value as f32).to_bits().into(),
        Elements::F16 => f16::from_f32(value as f32).to_bits().into(),
        Elements::Bf16 => ((value as f32).to_bits() >> 16).into(),
        Elements::I8 => (value as u8).into(),
        Elements::F64 => f64::from(value).to_bits(),
    };
    let row = usize::from(first) + bit / 32;
    wave.rows[row].0[lane] |= (bits << (bit % 32)) as u32;
    if elements == Elements::F64 {
        wave.rows[row + 1].0[lane] = (bits >> 32) as u32;
    }
}

/// Location of element (row, column) of C and D in AMD's tables: lane and first register.
fn output(shape: &Shape, block: usize, row: usize, column: usize) -> (usize, u16) {
    let (_, elements, size, ..) = *shape;
    let (lane, register) = match (elements, size) {
        (Elements::F64, 16) => (column + 16 * (row % 4), 2 * (row / 4)),
        (Elements::F64, _) => (column + 4 * block + 16 * row, 0),
        (_, 32) => (column + 32 * (row / 4 % 2), row % 4 + 4 * (row / 8) + 16 * block),
        (_, 16) => (column + 16 * (row / 4), row % 4 + 4 * block),
        _ => (column + 4 * block, row),
    };
    (lane, register as u16)
}

fn multiply(shape: &Shape, wave: &mut Wave, change: impl Fn(&mut Op)) {
    let name = control::operation(shape.0);
    let operation = find_whole(name, wave.machine).unwrap_or_else(|| panic!("missing: {name}"));
    let mut op = op(Run::Whole(operation.function));
    let rows = |first: u16| [Word::Row(RowIndex(first)), Word::Row(RowIndex(first + 1))];
    for (index, first) in [A, B, C].into_iter().enumerate() {
        op.sources[index] = Source { words: rows(first) };
    }
    op.destination = RowIndex(D);
    change(&mut op);
    (operation.function)(wave, &op);
}

/// A wave with random matrices, and their elements: A by block, row and k, B by block, column and
/// k, C by block, row and column.
type Matrices = (Wave, [Vec<i32>; 3]);

fn matrices(shape: &Shape) -> Matrices {
    let (_, elements, size, depth, blocks) = *shape;
    let bits = match elements {
        Elements::F32 => 32,
        Elements::F16 | Elements::Bf16 => 16,
        Elements::I8 => 8,
        Elements::F64 => 64,
    };
    let each = depth * size * blocks / LANES;
    let mut random = Random(11);
    let mut small = || (random.next() % 17) as i32 - 8;
    let mut wave = Wave::new(levels()[0]);
    wave.set_exec(LaneMask(1));
    let mut values = [Vec::new(), Vec::new(), Vec::new()];
    for (index, first) in [A, B].into_iter().enumerate() {
        for block in 0..blocks {
            for i in 0..size {
                for k in 0..depth {
                    let lane = i + size * (block + blocks * (k / each));
                    let value = small();
                    put(&mut wave, first, lane, k % each * bits, elements, value);
                    values[index].push(value);
                }
            }
        }
    }
    let sums = match elements {
        Elements::F64 => Elements::F64,
        Elements::I8 => Elements::I8,
        _ => Elements::F32,
    };
    for block in 0..blocks {
        for row in 0..size {
            for column in 0..size {
                let (lane, register) = output(shape, block, row, column);
                let value = small();
                if sums == Elements::I8 {
                    wave.rows[usize::from(C + register)].0[lane] = value as u32;
                } else {
                    put(&mut wave, C + register, lane, 0, sums, value);
                }
                values[2].push(value);
            }
        }
    }
    (wave, values)
}

fn result(shape: &Shape, wave: &Wave, block: usize, row: usize, column: usize) -> i32 {
    let (lane, register) = output(shape, block, row, column);
    let word = |at: u16| wave.row(RowIndex(D + register + at)).0[lane];
    match shape.1 {
        Elements::I8 => word(0) as i32,
        Elements::F64 => f64::from_bits(u64::from(word(0)) | u64::from(word(1)) << 32) as i32,
        _ => f32::from_bits(word(0)) as i32,
    }
}

/// Compares all elements with the product of plain matrices. `block_of_a` selects the block of A,
/// for broadcasts.
fn compare(
    shape: &Shape,
    wave: &Wave,
    [a, b, c]: &[Vec<i32>; 3],
    block_of_a: impl Fn(usize) -> usize,
) -> bool {
    let (_, _, size, depth, blocks) = *shape;
    (0..blocks * size * size).all(|at| {
        let (block, row, column) = (at / size / size, at / size % size, at % size);
        let products = (0..depth).map(|k| {
            a[(block_of_a(block) * size + row) * depth + k] * b[(block * size + column) * depth + k]
        });
        result(shape, wave, block, row, column) == products.sum::<i32>() + c[at]
    })
}

#[test]
pub fn small_integer_products_match_plain_matrices() {
    for (shape, level) in SHAPES.iter().flat_map(|s| levels().into_iter().map(move |l| (s, l))) {
        let (mut wave, values) = matrices(shape);
        wave.level = level;
        multiply(shape, &mut wave, |_| ());
        assert!(compare(shape, &wave, &values, |block| block), "{} {level:?}", shape.0);
        assert_eq!(wave.written_lanes, Some(LaneMask::FULL));
    }
}

/// Matrix operations ignore the rounding, denormal and overflow bits of MODE.
#[test]
fn matrix_operations_ignore_mode() {
    for shape in SHAPES {
        let results = MODES.map(|mode| {
            let mut random = Random(23);
            let mut wave = Wave::new(levels()[0]);
            wave.mode = mode;
            for row in &mut wave.rows[..80] {
                row.0.iter_mut().for_each(|word| *word = random.next() as u32);
            }
            multiply(shape, &mut wave, |_| ());
            wave.rows[usize::from(D)..usize::from(D) + 32].to_vec()
        });
        assert!(results.iter().all(|rows| *rows == results[0]), "{}", shape.0);
    }
}

#[test]
fn a_constant_third_source_is_broadcast() {
    for shape in SHAPES {
        let (mut wave, mut values) = matrices(shape);
        multiply(shape, &mut wave, |op| op.sources[2].words = [Word::Constant(0); 2]);
        values[2].fill(0);
        assert!(compare(shape, &wave, &values, |block| block), "{}", shape.0);
    }
}

#[test]
fn blocks_of_the_first_source_are_broadcast() {
    for shape in SHAPES.iter().filter(|shape| shape.4 > 1 && shape.1 != Elements::F64) {
        let (mut wave, values) = matrices(shape);
        multiply(shape, &mut wave, |op| {
            op.inst_mut().modifiers.cbsz = 1;
            op.inst_mut().modifiers.abid = 1;
        });
        assert!(compare(shape, &wave, &values, |block| block | 1), "{}", shape.0);
    }
}

#[test]
fn sources_of_double_precision_are_negated() {
    for shape in SHAPES.iter().filter(|shape| shape.1 == Elements::F64) {
        for negated in 1..8 {
            let (mut wave, mut values) = matrices(shape);
            multiply(shape, &mut wave, |op| op.inst_mut().modifiers.negated_sources = negated);
            for (source, values) in values.iter_mut().enumerate() {
                let factor = if negated >> source & 1 == 1 { -1 } else { 1 };
                values.iter_mut().for_each(|value| *value *= factor);
            }
            assert!(compare(shape, &wave, &values, |block| block), "{} neg {negated}", shape.0);
        }
    }
}

#[test]
fn lanes_of_the_second_source_are_rearranged() {
    // One block per 16 lanes: patterns permute whole blocks.
    let shape = &SHAPES[1];
    let (size, blocks) = (16, 4);
    let sources: [[usize; 4]; 8] =
        [[0, 1, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3], [1, 2, 3, 0], [0; 4], [1; 4], [2; 4], [3; 4]];
    for (pattern, sources) in sources.into_iter().enumerate() {
        let (mut wave, mut values) = matrices(shape);
        multiply(shape, &mut wave, |op| op.inst_mut().modifiers.blgp = pattern as u8);
        let b = values[1].clone();
        for block in 0..blocks {
            let from = sources[block] * size;
            values[1][block * size..][..size].copy_from_slice(&b[from..from + size]);
        }
        assert!(compare(shape, &wave, &values, |block| block), "blgp {pattern}");
    }
}

/// Sums a group of products of half precision or bfloat16 in pairs, flushing denormals at each
/// step.
fn pairwise(products: &[f32]) -> f32 {
    match products {
        [one] => *one,
        _ => {
            let (low, high) = products.split_at(products.len() / 2);
            without_denormal(pairwise(low) + pairwise(high))
        }
    }
}

fn without_denormal(value: f32) -> f32 {
    if value.is_subnormal() { 0f32.copysign(value) } else { value }
}

/// The summation order and roundings that MMA-Sim measured on hardware, on numbers for which other
/// orders give other sums.
#[test]
pub fn sums_follow_the_measured_order() {
    for shape in SHAPES.iter().filter(|shape| shape.1 != Elements::I8) {
        let (name, elements, size, depth, blocks) = *shape;
        let bits = match elements {
            Elements::F64 => 64,
            Elements::F32 => 32,
            _ => 16,
        };
        let each = depth * size * blocks / LANES;
        let group = if name.ends_with("bf16") { 2 } else { 4 };
        let mut random = Random(29);
        let mut wave = Wave::new(levels()[0]);
        wave.vgpr_count = 256;
        for row in &mut wave.rows[..80] {
            // Moderate exponents, and occasional denormals.
            row.0.iter_mut().for_each(|word| {
                let bits = random.next();
                *word = bits as u32 & if bits >> 60 == 0 { 0x83ff_83ff } else { 0xbfff_bfff };
            });
        }
        let source = |first: u16, i: usize, k: usize, block: usize| {
            let lane = i + size * (block + blocks * (k / each));
            let at = k % each * bits;
            let word = |index: usize| u64::from(wave.rows[usize::from(first) + index].0[lane]);
            let both = word(0) | word(1) << 32;
            both >> at & (u64::MAX >> (64 - bits))
        };
        let number = |bits: u64| match elements {
            Elements::F64 => f64::from_bits(bits),
            Elements::F32 => f32::from_bits(bits as u32).into(),
            Elements::F16 if bits & 0x7c00 == 0 => 0.0,
            Elements::F16 => f16::from_bits(bits as u16).to_f64(),
            _ if bits & 0x7f80 == 0 => 0.0,
            _ => f32::from_bits((bits as u32) << 16).into(),
        };
        let mut after = wave.clone();
        multiply(shape, &mut after, |_| ());
        for at in 0..blocks * size * size {
            let (block, row, column) = (at / size / size, at / size % size, at % size);
            let factors =
                |k: usize| [source(A, row, k, block), source(B, column, k, block)].map(number);
            let (lane, register) = output(shape, block, row, column);
            let word = |wave: &Wave, first: u16| wave.row(RowIndex(first + register)).0[lane];
            let third = f32::from_bits(word(&wave, C));
            let (got, expected) = match elements {
                Elements::F64 => {
                    let wide = |wave: &Wave, first| {
                        u64::from(word(wave, first)) | u64::from(word(wave, first + 1)) << 32
                    };
                    let sum = (0..depth).fold(f64::from_bits(wide(&wave, C)), |sum, k| {
                        factors(k)[0].mul_add(factors(k)[1], sum)
                    });
                    (wide(&after, D), sum.to_bits())
                }
                Elements::F32 => {
                    let sum = (0..depth).fold(third, |sum, k| {
                        (factors(k)[0] as f32).mul_add(factors(k)[1] as f32, sum)
                    });
                    (word(&after, D).into(), sum.to_bits().into())
                }
                _ => {
                    let products: Vec<f32> = (0..depth)
                        .map(|k| without_denormal((factors(k)[0] * factors(k)[1]) as f32))
                        .collect();
                    let start = if third.is_normal() { third } else { 0.0 };
                    let sum = products
                        .chunks(group.min(depth))
                        .fold(start, |sum, group| without_denormal(sum + pairwise(group)));
                    (word(&after, D).into(), sum.to_bits().into())
                }
            };
            assert!(
                got == expected,
                "{name}: {row}, {column} of {block} is {got:#x}, not {expected:#x}"
            );
        }
    }
}

/// Executes an operation with equal sources in all lanes and returns the result of lane 0.
fn single(name: &str, a: [u32; 2], b: [u32; 2], c: u32) -> u32 {
    single_of(Generation::Gfx90a, name, a, b, c)
}

fn single_of(generation: Generation, name: &str, a: [u32; 2], b: [u32; 2], c: u32) -> u32 {
    let shape = SHAPES.iter().find(|shape| shape.0 == name).expect("a shape");
    let mut wave = Wave::new(levels()[0]);
    wave.machine.generation = generation;
    for word in 0..2 {
        wave.rows[usize::from(A) + word].0.fill(a[word]);
        wave.rows[usize::from(B) + word].0.fill(b[word]);
    }
    for row in &mut wave.rows[usize::from(C)..usize::from(C) + 32] {
        row.0.fill(c);
    }
    multiply(shape, &mut wave, |_| ());
    wave.row(RowIndex(D)).0[0]
}

#[test]
fn single_precision_is_fused() {
    let a = 1.0 + 1.0f32 / 4096.0;
    let result =
        single("v_mfma_f32_4x4x1f32", [a.to_bits(), 0], [a.to_bits(), 0], (-1.0f32).to_bits());
    assert_eq!(f32::from_bits(result), a.mul_add(a, -1.0));
    assert_ne!(f32::from_bits(result), a * a - 1.0);
    // Denormals are kept.
    let result = single("v_mfma_f32_4x4x1f32", [1, 0], [1.0f32.to_bits(), 0], 1);
    assert_eq!(result, 2);
}

#[test]
fn halves_are_summed_pairwise_and_flushed() {
    let halves = |values: [f32; 4]| {
        let [a, b, c, d] = values.map(|value| u32::from(f16::from_f32(value).to_bits()));
        [a | b << 16, c | d << 16]
    };
    let name = "v_mfma_f32_4x4x4f16";
    // Summed in sequence, the ones would be lost; summed in pairs, they survive.
    let big = 4096.0;
    let result = single(name, halves([big, 1.0, 1.0, -big]), halves([big, 1.0, 1.0, big]), 0);
    let pairs = (big * big + 1.0) + (1.0 - big * big);
    assert_eq!(f32::from_bits(result), pairs);
    // Denormal sources and third sources read as zero.
    assert_eq!(single(name, [1, 0], halves([1.0; 4]), 1), 0);
    // A NaN is returned quieted.
    assert_eq!(single(name, [0x7c01, 0], halves([1.0; 4]), 0), 0x7fc0_2000);
    // Infinity minus infinity gives the default NaN.
    let result = single(name, [0x7c00, 0], halves([1.0; 4]), 0xff80_0000);
    assert_eq!(result, 0x7fc0_0000);
}
