//! Differences between generations: denormals, and the sums of gfx940.

use super::{
    A, B, C, D, Elements, LANES, Random, SHAPES, Wave, levels, multiply, output, single_of,
};
use crate::wave::RowIndex;
use flipwave_isa::Generation;
use half::f16;

/// Only MI200 flushes denormals of half precision and bfloat16, in sources and in sums.
#[test]
fn denormal_flushing_depends_on_generation() {
    let halves = "v_mfma_f32_4x4x4f16";
    let [ones, brain_ones] = [[0x3c00_3c00; 2], [0x3f80_3f80; 2]];
    for (generation, kept, brain) in [
        (Generation::Gfx9, true, "v_mfma_f32_4x4x2bf16"),
        (Generation::Gfx90a, false, "v_mfma_f32_4x4x2bf16"),
        (Generation::Gfx90a, false, "v_mfma_f32_4x4x4bf16_1k"),
        (Generation::Gfx940, true, "v_mfma_f32_4x4x4bf16_1k"),
    ] {
        let kept = |value: u32| if kept { value } else { 0 };
        let least = 2f32.powi(-24).to_bits();
        assert_eq!(single_of(generation, halves, [1, 0], ones, 0), kept(least), "{generation:?}");
        // The accumulator.
        assert_eq!(single_of(generation, halves, [0; 2], ones, 1), kept(1), "{generation:?}");
        let product = single_of(generation, brain, [1, 0], brain_ones, 0);
        assert_eq!(product, kept(0x1_0000), "{generation:?} {brain}");
        // Single precision keeps denormals on every generation.
        let single = single_of(generation, "v_mfma_f32_4x4x1f32", [1, 0], [0x3f80_0000, 0], 1);
        assert_eq!(single, 2, "{generation:?}");
    }
}

/// The fixed-point sum of gfx940, computed with numbers rather than bits. `least` is the least
/// exponent of the source format.
fn aligned_sum(factors: &[[f64; 2]], before: f32, least: i32) -> f32 {
    // Significand and exponent; a denormal has the least exponent, a zero that of single precision.
    let parts = |value: f64, least: i32| {
        let exponent =
            if value == 0.0 { -126 } else { (value.abs().log2().floor() as i32).max(least) };
        (value * 2f64.powi(-exponent), exponent)
    };
    let products: Vec<_> = factors
        .iter()
        .map(|[a, b]| {
            let ((a, a_exponent), (b, b_exponent)) = (parts(*a, least), parts(*b, least));
            (a * b, a_exponent + b_exponent)
        })
        .collect();
    let greatest = products.iter().map(|product| product.1).max().expect("a product");
    let cut =
        |(value, exponent): (f64, i32), to: i32, bits: i32| value * 2f64.powi(bits + exponent - to);
    let sum: f64 = products.iter().map(|product| cut(*product, greatest, 24).trunc()).sum();
    let third = parts(before.into(), -126);
    let top = greatest.max(third.1);
    let sum = cut((sum, greatest - 24), top, 31).floor() * 2f64.powi(-31);
    let third = cut(third, top, 24).floor() * 2f64.powi(-24);
    // Truncation leaves no negative zeros.
    ((sum + third) * 2f64.powi(top) + 0.0) as f32
}

#[test]
fn sums_of_gfx940_are_aligned() {
    let name = "v_mfma_f32_4x4x4f16";
    let ones = [0x3c00, 0];
    // The accumulator is rounded down to 24 bits, then rounded.
    for (third, expected) in [(-(2f32.powi(-25)), 0x3f7f_ffff), (2f32.powi(-25), 0x3f80_0000)] {
        let result = single_of(Generation::Gfx940, name, ones, ones, third.to_bits());
        assert_eq!(result, expected, "{third:e}");
    }
    let mut random = Random(31);
    for shape in SHAPES.iter().filter(|shape| shape.0.ends_with("f16") || shape.0.ends_with("_1k"))
    {
        let (name, elements, size, depth, blocks) = *shape;
        if name.ends_with("bf16") {
            continue;
        }
        let each = depth * size * blocks / LANES;
        let mut wave = Wave::new(levels()[0]);
        wave.machine.generation = Generation::Gfx940;
        wave.vgpr_count = 256;
        for (at, row) in wave.rows[..80].iter_mut().enumerate() {
            // Moderate exponents, and occasional denormals and zeros.
            let is_third = at >= usize::from(C);
            row.0.iter_mut().for_each(|word| {
                let bits = random.next();
                let mask = match bits >> 60 {
                    0 => 0x83ff_83ff,
                    1 => 0xbfff_0000,
                    _ if elements == Elements::Bf16 || is_third => 0x47ff_47ff,
                    _ => 0xbfff_bfff,
                };
                *word = bits as u32 & mask;
                if elements == Elements::Bf16 || is_third {
                    *word ^= 0x3f80_3f80 & mask;
                }
            });
        }
        let source = |first: u16, i: usize, k: usize, block: usize| {
            let lane = i + size * (block + blocks * (k / each));
            let at = k % each * 16;
            let bits = wave.rows[usize::from(first) + at / 32].0[lane] >> (at % 32) & 0xffff;
            match elements {
                Elements::F16 => f16::from_bits(bits as u16).to_f64(),
                _ => f32::from_bits(bits << 16).into(),
            }
        };
        let least = if elements == Elements::F16 { -14 } else { -126 };
        let mut after = wave.clone();
        multiply(shape, &mut after, |_| ());
        for at in 0..blocks * size * size {
            let (block, row, column) = (at / size / size, at / size % size, at % size);
            let factors: Vec<_> = (0..depth)
                .map(|k| [source(A, row, k, block), source(B, column, k, block)])
                .collect();
            let (lane, register) = output(shape, block, row, column);
            let word = |wave: &Wave, first: u16| wave.row(RowIndex(first + register)).0[lane];
            let expected = factors
                .chunks(8)
                .fold(f32::from_bits(word(&wave, C)), |sum, group| aligned_sum(group, sum, least));
            let got = word(&after, D);
            assert!(
                got == expected.to_bits(),
                "{name}: {row}, {column} of {block} is {got:#x}, not {:#x}",
                expected.to_bits()
            );
        }
    }
}
