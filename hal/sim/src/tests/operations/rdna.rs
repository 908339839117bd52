//! Operations that only gfx11 and gfx12 have.

use super::exact::{Format, HALF, Rule, SINGLE};
use super::float::fused;
use super::{DEFAULT_MODE, Random, Sources, check, operation, samples};
use crate::wave::Mode;

/// Bfloat16.
const BRAIN: Format = Format { mantissa: 7, exponent: 8 };

/// `neg_lo` says of each source whether it is signed.
#[test]
pub fn dot_products_of_mixed_signs() {
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
pub fn pairs_of_integers_from_numbers() {
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
pub fn newer_dot_products() {
    let half = |bits: u64, at: u32| bits >> (16 * at) & 0xffff;
    for name in ["v_dot2_f32_bf16", "v_dot2acc_f32_bf16"] {
        check(name, DEFAULT_MODE, &samples(operation(name), 3000), |s| {
            let step = |sum, at| {
                let [a, b] = [s[0], s[1]].map(|bits| half(bits, at) << 16);
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
        ("v_dot4_f32_fp8_fp8", E4M3, E4M3),
        ("v_dot4_f32_fp8_bf8", E4M3, E5M2),
        ("v_dot4_f32_bf8_fp8", E5M2, E4M3),
        ("v_dot4_f32_bf8_bf8", E5M2, E5M2),
    ] {
        check(name, DEFAULT_MODE, &samples(operation(name), 1000), |s| {
            (0..4).fold(s[2], |sum, at| {
                let of = |format: Eight, bits: u64| format.single((bits >> (8 * at)) as u8);
                fused(Rule::nearest(SINGLE), of(left, s[0]), of(right, s[1]), sum)
            })
        });
    }
}

/// A format of eight bits, by the words of its specification.
#[derive(Clone, Copy)]
struct Eight {
    mantissa: i32,
    bias: i32,
    has_infinity: bool,
}

const E4M3: Eight = Eight { mantissa: 3, bias: 7, has_infinity: false };
const E5M2: Eight = Eight { mantissa: 2, bias: 15, has_infinity: true };

impl Eight {
    fn value(self, bits: u8) -> f64 {
        let sign = if bits >> 7 != 0 { -1.0 } else { 1.0 };
        let fraction = f64::from(bits & ((1 << self.mantissa) - 1)) / f64::powi(2.0, self.mantissa);
        let exponent = i32::from(bits & 0x7f) >> self.mantissa;
        let is_top = exponent == (1 << (7 - self.mantissa)) - 1;
        if is_top && self.has_infinity {
            return if fraction == 0.0 { sign * f64::INFINITY } else { f64::NAN };
        }
        if bits & 0x7f == 0x7f {
            return f64::NAN;
        }
        match exponent {
            0 => sign * fraction * f64::powi(2.0, 1 - self.bias),
            _ => sign * (1.0 + fraction) * f64::powi(2.0, exponent - self.bias),
        }
    }

    /// The bits in single precision. NaNs are quiet ones; those of E5M2 keep their payload.
    fn single(self, bits: u8) -> u64 {
        let value = self.value(bits);
        let sign = u64::from(bits >> 7) << 31;
        match value.is_nan() {
            true if self.has_infinity => sign | 0x7f80_0000 | u64::from(bits & 3) << 21,
            true => sign | 0x7fc0_0000,
            false => (value as f32).to_bits().into(),
        }
    }

    /// The nearest number, of two the one that is even.
    fn nearest(self, value: f32, clamps: bool) -> u8 {
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        if value.is_nan() {
            return sign | 0x7f;
        }
        let magnitude = f64::from(value.abs());
        let finite = (0..0x80u8).filter(|bits| self.value(*bits).is_finite());
        let greatest = finite.clone().max().unwrap_or_default();
        let next = 2.0 * self.value(greatest) - self.value(greatest - 1);
        let distance = |bits: u8| (self.value(bits) - magnitude).abs();
        // What rounds to the number after the greatest does not fit.
        let limit = (self.value(greatest) + next) / 2.0;
        if magnitude > limit || magnitude == limit && greatest & 1 != 0 {
            return match (clamps, self.has_infinity) {
                (true, _) => sign | greatest,
                (false, true) => sign | 0x7c,
                (false, false) => sign | 0x7f,
            };
        }
        let best =
            finite.min_by(|a, b| distance(*a).total_cmp(&distance(*b)).then((a & 1).cmp(&(b & 1))));
        sign | best.unwrap_or_default()
    }
}

#[test]
pub fn floating_point_of_eight_bits() {
    let bytes: Vec<Sources> = (0..0x1_0000).map(|bits| [bits, 0, 0, 0]).collect();
    let mut random = Random(5);
    let mut numbers: Vec<Sources> = (0..4000)
        .map(|_| {
            // Exponents around those of the formats.
            let exponent = 100 + random.next() % 50;
            let bits = random.next() & 0x807f_ffff | exponent << 23;
            [bits, random.next() & 0xffff_ffff, 0, 0]
        })
        .collect();
    for special in [0, 1 << 31, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0x7f80_0001, 1, 0x7f7f_ffff]
    {
        numbers.push([special, 0x3f80_0000, 0, 0]);
    }
    for bits in 0..0x100 {
        // Numbers of the formats, and those in the middle between two.
        for format in [E4M3, E5M2] {
            let value = format.value(bits as u8) as f32;
            let middle = (value + format.value((bits as u8).wrapping_add(1)) as f32) / 2.0;
            numbers.push([value.to_bits().into(), middle.to_bits().into(), 0, 0]);
        }
    }
    for (suffix, format) in [("fp8", E4M3), ("bf8", E5M2)] {
        check(&format!("v_cvt_f32_{suffix} ocp"), DEFAULT_MODE, &bytes, |s| {
            format.single(s[0] as u8)
        });
        check(&format!("v_cvt_pk_f32_{suffix} ocp"), DEFAULT_MODE, &bytes, |s| {
            format.single(s[0] as u8) | format.single((s[0] >> 8) as u8) << 32
        });
        for mode in [DEFAULT_MODE, Mode(DEFAULT_MODE.0 | Mode::FP16_OVERFLOW)] {
            let clamps = mode.0 & Mode::FP16_OVERFLOW != 0;
            let byte = |bits: u64| u64::from(format.nearest(f32::from_bits(bits as u32), clamps));
            check(&format!("v_cvt_pk_{suffix}_f32 ocp"), mode, &numbers, |s| {
                byte(s[0]) | byte(s[1]) << 8
            });
            // With the random bits below the last place added, what is left is cut off.
            check(&format!("v_cvt_sr_{suffix}_f32 ocp"), mode, &numbers, |s| {
                if !f32::from_bits(s[0] as u32).is_finite() {
                    return byte(s[0]);
                }
                let below = 23 - format.mantissa;
                let sum = (s[0] & 0x7fff_ffff) + (s[1] >> (32 - below));
                byte(sum >> below << below | s[0] & 0x8000_0000)
            });
        }
    }
}
