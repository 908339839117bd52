//! Operations that only gfx11 and gfx12 have.

use super::exact::{Format, HALF, Rule, SINGLE};
use super::float::fused;
use super::packed::widened;
use super::small_float::{BF8, FP8, Table};
use super::{DEFAULT_MODE, Sources, check, operation, samples};

/// Bfloat16.
const BRAIN: Format = Format { mantissa: 7, exponent: 8 };

/// `neg_lo` marks each source as signed or unsigned.
#[test]
pub fn mixed_sign_dot_products_match_reference() {
    for (name, size) in [("v_dot4_i32_iu8", 8), ("v_dot8_i32_iu4", 4)] {
        for signs in 0..4_u32 {
            let exact = |s: &Sources| -> i64 {
                let part = |source: usize, at: u32| {
                    let bits = (s[source] >> (at * size) & ((1 << size) - 1)) as i64;
                    let is_negative = signs >> source & 1 != 0 && bits >> (size - 1) != 0;
                    bits - if is_negative { 1 << size } else { 0 }
                };
                let products = (0..32 / size).map(|at| part(0, at) * part(1, at));
                products.sum::<i64>() + i64::from(s[2] as i32)
            };
            let name = format!("{name} {signs}");
            let all = samples(operation(&name), 1000);
            check(&name, DEFAULT_MODE, &all, |s| u64::from(exact(s) as u32));
            let clamped = |s: &Sources| exact(s).clamp(-(1 << 31), (1 << 31) - 1) as u32;
            check(&format!("{name} clamp"), DEFAULT_MODE, &all, |s| clamped(s).into());
        }
    }
}

#[test]
pub fn packed_integer_conversions_match_reference() {
    let rounded = |bits: u64, least: f64, most: f64| -> u64 {
        let value = f64::from(f32::from_bits(bits as u32));
        if value.is_nan() { 0 } else { value.trunc().clamp(least, most) as i64 as u64 & 0xffff }
    };
    for (name, least, most) in
        [("v_cvt_pk_i16_f32", -32768.0, 32767.0), ("v_cvt_pk_u16_f32", 0.0, 65535.0)]
    {
        check(name, DEFAULT_MODE, &samples(operation(name), 2000), |s| {
            rounded(s[0], least, most) | rounded(s[1], least, most) << 16
        });
    }
}

/// Third source, low product, high product, each step rounded once.
#[test]
pub fn each_dot_product_step_is_rounded_once() {
    let half = |bits: u64, at: u32| bits >> (16 * at) & 0xffff;
    type Widen = fn(u64) -> u64;
    let brain: Widen = |bits| bits << 16;
    for (name, widen) in [
        ("v_dot2_f32_bf16", brain),
        ("v_dot2c_f32_bf16", brain),
        ("v_dot2acc_f32_bf16", brain),
        ("v_dot2_f32_f16 gfx940", widened),
        ("v_dot2c_f32_f16 gfx940", widened),
    ] {
        check(name, DEFAULT_MODE, &samples(operation(name), 3000), |s| {
            let step = |sum, at| {
                let [a, b] = [s[0], s[1]].map(|bits| widen(half(bits, at)));
                fused(Rule::nearest(SINGLE), a, b, sum)
            };
            step(step(s[2], 0), 1)
        });
    }
    for (name, format) in [("v_dot2_bf16_bf16", BRAIN), ("v_dot2_f16_f16", HALF)] {
        check(name, DEFAULT_MODE, &samples(operation(name), 3000), |s| {
            let step = |sum, at| fused(Rule::nearest(format), half(s[0], at), half(s[1], at), sum);
            step(step(s[2], 0), 1)
        });
    }
    for (name, left, right) in [
        ("v_dot4_f32_fp8_fp8", FP8, FP8),
        ("v_dot4_f32_fp8_bf8", FP8, BF8),
        ("v_dot4_f32_bf8_fp8", BF8, FP8),
        ("v_dot4_f32_bf8_bf8", BF8, BF8),
    ] {
        check(name, DEFAULT_MODE, &samples(operation(name), 1000), |s| {
            (0..4).fold(s[2], |sum, at| {
                let factor = |table: Table, bits: u64| table.single(bits >> (8 * at));
                fused(Rule::nearest(SINGLE), factor(left, s[0]), factor(right, s[1]), sum)
            })
        });
    }
}
