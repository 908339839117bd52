//! Rounding of sums of 8-bit elements and of single precision truncated to 19 bits.

use super::wide::{Element, elements, execute, place, sizes, wave};
use super::{A, B, C, D, Elements, Random, output};
use crate::wave::RowIndex;

/// Returns a sum of 8-bit elements by MMA-Sim's rule, computed with numbers rather than bits: even
/// and odd products separately, each truncated to 24 places, then both aligned with the
/// accumulator. `least` holds the least exponents of the formats.
fn aligned_sum(factors: &[[f64; 2]], before: f32, least: [i32; 2], apart: bool) -> f32 {
    let parts = |value: f64, least: i32| {
        let magnitude_exponent = |value: f64| (value.abs().log2().floor() as i32).max(least);
        let exponent = if value == 0.0 { -126 } else { magnitude_exponent(value) };
        (value * 2f64.powi(-exponent), exponent)
    };
    let products: Vec<(f64, i32)> = factors
        .iter()
        .map(|[a, b]| {
            let ((a, a_exponent), (b, b_exponent)) = (parts(*a, least[0]), parts(*b, least[1]));
            (a * b, a_exponent + b_exponent)
        })
        .collect();
    let cut =
        |(value, exponent): (f64, i32), to: i32, bits: i32| value * 2f64.powi(bits + exponent - to);
    let sum_of = |products: &[(f64, i32)]| {
        let greatest = products.iter().map(|product| product.1).max().expect("a product");
        let sum: f64 = products.iter().map(|product| cut(*product, greatest, 24).trunc()).sum();
        (sum * 2f64.powi(-24), greatest)
    };
    let (sum, greatest) = if apart {
        let [even, odd] = [0, 1].map(|first| {
            sum_of(&products.iter().copied().skip(first).step_by(2).collect::<Vec<_>>())
        });
        let top = even.1.max(odd.1);
        let floor = |part| cut(part, top, 24).floor() * 2f64.powi(-24);
        (floor(even) + floor(odd), top)
    } else {
        sum_of(&products)
    };
    let third = parts(before.into(), -126);
    let top = greatest.max(third.1);
    let sum = cut((sum, greatest), top, 31).floor() * 2f64.powi(-31);
    let is_near = !apart || third.1 >= top - 25;
    let third = if is_near { cut(third, top, 24).floor() * 2f64.powi(-24) } else { 0.0 };
    ((sum + third) * 2f64.powi(top) + 0.0) as f32
}

#[test]
fn sums_match_measurements() {
    // Name, whether the elements have 8 bits, and the greatest number of products of a sum.
    for (name, apart, group) in [
        ("v_mfma_f32_16x16x32_fp8_fp8", true, 16),
        ("v_mfma_f32_32x32x16_bf8_fp8", true, 16),
        ("v_mfma_f32_16x16x8_xf32", false, 4),
        ("v_mfma_f32_32x32x4_xf32", false, 4),
    ] {
        let (size, depth) = sizes(name);
        let formats = elements(name, "gfx942");
        let mut random = Random(47);
        let mut wave = wave("gfx942");
        let third: fn(u64) -> u32 = |bits| bits as u32 & 0x87ff_ffff ^ 0x3f80_0000;
        for (at, row) in wave.rows[..72].iter_mut().enumerate() {
            let is_third = at >= usize::from(C);
            row.0.iter_mut().for_each(|word| {
                let bits = random.next();
                *word = match (is_third, apart) {
                    (true, _) => third(bits),
                    // Any bytes except the NaN.
                    (_, true) => {
                        let bytes = (bits as u32).to_le_bytes();
                        u32::from_le_bytes(bytes.map(|byte| if byte == 0x80 { 0 } else { byte }))
                    }
                    _ if bits >> 60 == 0 => 0,
                    _ => third(bits),
                };
            });
        }
        let least = formats.map(|format| match format {
            Element::Small(_, _, bias) => 1 - bias,
            _ => -126,
        });
        let number = |first: u16, side: usize, line: usize, k: usize| {
            let bits = formats[side].bits();
            let (lane, item) = place(bits, size, depth, line, k);
            let at = item * bits as usize;
            let word = wave.rows[usize::from(first) + at / 32].0[lane] >> (at % 32);
            match formats[side] {
                Element::Small(_, mantissa, bias) => {
                    let (field, places) = (word >> mantissa & (0x7f >> mantissa), 1 << mantissa);
                    let digits = word % places + if field == 0 { 0 } else { places };
                    let exponent = field.max(1) as i32 - bias - mantissa as i32;
                    let value = f64::from(digits) * 2f64.powi(exponent);
                    if word >> 7 & 1 != 0 { -value } else { value }
                }
                // The last 13 bits are ignored.
                _ => f32::from_bits(word >> 13 << 13).into(),
            }
        };
        let mut after = wave.clone();
        execute(name, &mut after, |_| ());
        for at in 0..size * size {
            let (row, column) = (at / size, at % size);
            let factors: Vec<[f64; 2]> =
                (0..depth).map(|k| [number(A, 0, row, k), number(B, 1, column, k)]).collect();
            let (lane, register) = output(&("", Elements::F32, size, 0, 1), 0, row, column);
            let before = f32::from_bits(wave.row(RowIndex(C + register)).0[lane]);
            let wanted = factors
                .chunks(group)
                .fold(before, |sum, group| aligned_sum(group, sum, least, apart));
            let got = f32::from_bits(after.row(RowIndex(D + register)).0[lane]);
            assert!(
                got.to_bits() == wanted.to_bits(),
                "{name}: {row}, {column} is {got:e}, not {wanted:e}"
            );
        }
    }
}

/// Infinities, NaNs, and truncation to eight bits and of the addend.
#[test]
fn sums_of_bytes_with_nan_or_infinity() {
    let run = |processor: &str, name: &str, byte: u32, third: f32| {
        let mut wave = wave(processor);
        let one = if processor == "gfx942" { 0x40 } else { 0x38 };
        for register in 0..2 {
            wave.rows[usize::from(A) + register].0.fill(one * 0x0101_0101);
            wave.rows[usize::from(B) + register].0.fill(one * 0x0101_0101);
        }
        wave.rows[usize::from(A)].0.fill(byte | (one * 0x0101_0100));
        for register in 0..16 {
            wave.rows[usize::from(C) + register].0.fill(third.to_bits());
        }
        execute(name, &mut wave, |_| ());
        f32::from_bits(wave.row(RowIndex(D)).0[0])
    };
    let (fp8, bf8) = ("v_mfma_f32_16x16x32_fp8_fp8", "v_mfma_f32_16x16x32_bf8_fp8");
    assert!(run("gfx942", fp8, 0x80, 0.0).is_nan());
    assert!(run("gfx950", fp8, 0x7f, 0.0).is_nan());
    assert_eq!(run("gfx950", fp8, 0x80, 0.0), 28.0);
    assert_eq!(run("gfx950", bf8, 0x7c, 0.0), f32::INFINITY);
    assert_eq!(run("gfx942", fp8, 0x40, f32::NEG_INFINITY), f32::NEG_INFINITY);
    // A small negative addend does not change the sum.
    assert_eq!(run("gfx942", fp8, 0x40, -(2f32.powi(-60))), 32.0);
}
