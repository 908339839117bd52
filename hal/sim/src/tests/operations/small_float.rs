//! Conversions of small floating-point formats, checked against tables of all their numbers. The
//! nearest number is found by search.

pub mod scaled;

use super::{MODES, Random, Sources, check, operation, samples};
use crate::wave::Mode;

/// A format from the manual's table: bits of the exponent and of the mantissa, the bias, the bits
/// of the greatest number, and the results of overflow and NaNs if MODE does not clamp.
#[derive(Clone, Copy)]
pub struct Table {
    exponent: u32,
    mantissa: u32,
    bias: i32,
    greatest: u32,
    overflow: fn(u32) -> u32,
    nan: u32,
    has_minus_zero: bool,
}

const SIGN: u32 = 0x80;
pub const FP8: Table = Table {
    exponent: 4,
    mantissa: 3,
    bias: 7,
    greatest: 0x7e,
    overflow: |sign| sign | 0x7f,
    nan: 0x7f,
    has_minus_zero: true,
};
pub const BF8: Table = Table {
    exponent: 5,
    mantissa: 2,
    bias: 15,
    greatest: 0x7b,
    overflow: |sign| sign | 0x7c,
    nan: 0x7e,
    has_minus_zero: true,
};
const FP8_FNUZ: Table = Table {
    exponent: 4,
    mantissa: 3,
    bias: 8,
    greatest: 0x7f,
    overflow: |_| 0x80,
    nan: 0x80,
    has_minus_zero: false,
};
const BF8_FNUZ: Table = Table { exponent: 5, mantissa: 2, bias: 16, ..FP8_FNUZ };
pub const FP4: Table = Table {
    exponent: 2,
    mantissa: 1,
    bias: 1,
    greatest: 7,
    overflow: |sign| sign | 7,
    nan: 7,
    has_minus_zero: true,
};
pub const FP6: Table =
    Table { mantissa: 3, greatest: 31, overflow: |sign| sign | 31, nan: 31, ..FP4 };
pub const BF6: Table = Table { exponent: 3, mantissa: 2, bias: 3, ..FP6 };

impl Table {
    fn bits(self) -> u32 {
        self.exponent + self.mantissa + 1
    }

    /// Returns the magnitude with these bits, up to one above the greatest.
    fn magnitude(self, bits: u32) -> f64 {
        let places = 2f64.powi(self.mantissa as i32);
        let (field, fraction) = (bits >> self.mantissa, f64::from(bits) % places);
        let exponent = field.max(1) as i32 - self.bias;
        let hidden = if field == 0 { 0.0 } else { 1.0 };
        (hidden + fraction / places) * 2f64.powi(exponent)
    }

    /// Returns the number with these bits.
    pub fn number(self, bits: u32) -> f64 {
        let sign = 1 << (self.bits() - 1);
        let magnitude = bits & (sign - 1);
        let value = if magnitude <= self.greatest {
            self.magnitude(magnitude)
        } else if magnitude == 0x7c && self.bias == 15 {
            f64::INFINITY
        } else {
            f64::NAN
        };
        if bits & sign == 0 {
            value
        } else if !self.has_minus_zero && magnitude == 0 {
            f64::NAN
        } else {
            -value
        }
    }

    /// Returns the number of a byte as single-precision bits. A NaN keeps its sign.
    pub fn single(self, bits: u64) -> u64 {
        let bits = bits as u32 & 0xff;
        let value = self.number(bits);
        let nan = 0x7fc0_0000 | (bits & SIGN) << 24;
        u64::from(if value.is_nan() { nan } else { (value as f32).to_bits() })
    }

    /// Returns the bits of the nearest number, or of the number selected by random bits.
    pub fn nearest(self, value: f64, random: Option<u32>, clamps: bool) -> u32 {
        let sign = if value.is_sign_negative() { 1 << (self.bits() - 1) } else { 0 };
        if value.is_nan() {
            return if self.has_minus_zero { self.nan | sign } else { self.nan };
        }
        let magnitude = value.abs();
        let next = self.greatest + 1;
        let below = (0..=next).rev().find(|bits| self.magnitude(*bits) <= magnitude).unwrap_or(0);
        let [low, high] = [below, below + 1].map(|bits| self.magnitude(bits));
        let part = (magnitude - low) / (high - low);
        let up = match random {
            _ if below == next => false,
            None => part > 0.5 || part == 0.5 && below % 2 == 1,
            Some(random) => {
                let places = 23 - self.mantissa;
                let part = (part * f64::from(1 << places)).floor() as u64;
                part + u64::from(random >> (32 - places)) >= 1 << places
            }
        };
        let bits = below + u32::from(up);
        if bits > self.greatest {
            if clamps { sign | self.greatest } else { (self.overflow)(sign) }
        } else if bits == 0 && !self.has_minus_zero {
            0
        } else {
            sign | bits
        }
    }
}

/// Returns a single-precision number, with denormals flushed as MODE requires.
fn single(bits: u64, mode: Mode) -> f64 {
    let value = f32::from_bits(bits as u32);
    if value.is_subnormal() && mode.flushes_f32_sources() {
        0f64.copysign(value.into())
    } else if value.is_nan() {
        f64::NAN.copysign(if bits >> 31 & 1 != 0 { -1.0 } else { 1.0 })
    } else {
        value.into()
    }
}

/// Returns numbers near those of a table, between them, at midpoints, beyond them, and others.
fn near(table: Table, count: usize) -> Vec<u64> {
    let mut random = Random(17);
    let mut values = Vec::new();
    for bits in 0..=table.greatest + 1 {
        let [low, high] = [bits, bits + 1].map(|bits| table.magnitude(bits) as f32);
        for value in [low, (low + high) / 2.0, (3.0 * low + high) / 4.0] {
            let bits = u64::from(value.to_bits());
            for bits in [bits, bits + 1, bits.saturating_sub(1)] {
                values.extend([bits, bits | 1 << 31]);
            }
        }
    }
    let special = [0x7f80_0000, 0x7f80_0001, 0x7fc0_0000, 0x7fff_ffff, 0x7f7f_ffff, 1, 0x7f_ffff];
    values.extend(special.into_iter().flat_map(|bits: u64| [bits, bits | 1 << 31]));
    values.extend((0..count).map(|_| random.next() & 0xffff_ffff));
    values
}

/// Returns pairs of such numbers with random words.
fn pairs(table: Table) -> Vec<Sources> {
    let values = near(table, 500);
    let mut random = Random(19);
    let word = |random: &mut Random| random.next() & 0xffff_ffff;
    values.iter().map(|value| [*value, random.choose(&values), word(&mut random), 0]).collect()
}

const FORMATS: [(&str, &str, Table); 4] =
    [("fp8", "", FP8), ("bf8", "", BF8), ("fp8", " fnuz", FP8_FNUZ), ("bf8", " fnuz", BF8_FNUZ)];

#[test]
pub fn every_byte_is_the_number_of_the_table() {
    let all: Vec<Sources> = (0..0x1_0000).step_by(0x101).map(|bits| [bits, 0, 0, 0]).collect();
    for (format, kind, table) in FORMATS {
        check(&format!("v_cvt_f32_{format}{kind}"), MODES[0], &all, |s| table.single(s[0]));
        check(&format!("v_cvt_pk_f32_{format}{kind}"), MODES[0], &all, |s| {
            table.single(s[0]) | table.single(s[0] >> 8) << 32
        });
    }
    // Greatest and least numbers, and one, as printed by AMD and the Open Compute Project.
    for (table, greatest, least, one) in [
        (FP8, 448.0, -9, 0x38),
        (BF8, 57344.0, -16, 0x3c),
        (FP8_FNUZ, 240.0, -10, 0x40),
        (BF8_FNUZ, 57344.0, -17, 0x40),
        (FP6, 7.5, -3, 8),
        (BF6, 28.0, -4, 12),
        (FP4, 6.0, -1, 2),
    ] {
        assert_eq!(table.number(table.greatest), greatest);
        assert_eq!(table.number(1), 2f64.powi(least));
        assert_eq!(table.number(one), 1.0);
    }
}

#[test]
pub fn bytes_are_the_nearest_numbers() {
    for (format, kind, table) in FORMATS {
        let name = format!("v_cvt_pk_{format}_f32{kind}");
        for mode in MODES {
            let clamps = mode.0 >> 23 & 1 != 0;
            let byte = |bits| u64::from(table.nearest(single(bits, mode), None, clamps));
            check(&name, mode, &pairs(table), |s| byte(s[0]) | byte(s[1]) << 8);
        }
    }
}

#[test]
pub fn random_bits_select_the_byte() {
    for (format, kind, table) in FORMATS {
        let name = format!("v_cvt_sr_{format}_f32{kind}");
        for mode in MODES {
            let clamps = mode.0 >> 23 & 1 != 0;
            let sources: Vec<Sources> =
                pairs(table).into_iter().map(|s| [s[0], s[2], 0, 0]).collect();
            check(&name, mode, &sources, |s| {
                table.nearest(single(s[0], mode), Some(s[1] as u32), clamps).into()
            });
        }
    }
}

/// The share of random words that round up equals the fraction above the lower number.
#[test]
fn stochastic_rounding_has_the_right_mean() {
    let value = 1.0 + 0.3 / 8.0;
    let mut random = Random(23);
    let ups = (0..10_000)
        .filter(|_| FP8.nearest(value, Some(random.next() as u32), false) != 0x38)
        .count();
    assert!((2800..3200).contains(&ups), "{ups}");
}

#[test]
pub fn bfloat16_and_half_conversions_match_reference() {
    let rounded = |value: f32| {
        // Round to nearest even with integer arithmetic.
        let bits = value.to_bits();
        let up = (bits >> 16 & 1) + 0x7fff;
        if value.is_nan() { bits >> 16 | 0x40 } else { bits.wrapping_add(up) >> 16 }
    };
    for mode in MODES {
        let flushed = |bits: u64| {
            let value = f32::from_bits(bits as u32);
            let flush = value.is_subnormal() && mode.flushes_f32_sources();
            if flush { 0f32.copysign(value) } else { value }
        };
        let samples = samples(operation("v_cvt_pk_bf16_f32"), 2000);
        check("v_cvt_pk_bf16_f32", mode, &samples, |s| {
            u64::from(rounded(flushed(s[0])) | rounded(flushed(s[1])) << 16)
        });
        let clamped = |value: f32| {
            if !value.is_nan() {
                value.clamp(0.0, 1.0) + 0.0
            } else if mode.0 >> 8 & 1 != 0 {
                0.0
            } else {
                value
            }
        };
        check("v_cvt_pk_bf16_f32 clamp", mode, &samples, |s| {
            u64::from(rounded(clamped(flushed(s[0]))) | rounded(clamped(flushed(s[1]))) << 16)
        });
        // Adds below the last place and truncates, where no result is denormal.
        let normal: Vec<Sources> =
            samples.iter().copied().filter(|s| f32::from_bits(s[0] as u32).is_normal()).collect();
        check("v_cvt_sr_bf16_f32", mode, &normal, |s| ((s[0] + (s[1] >> 16)) >> 16) & 0xffff);
        let halves: Vec<Sources> = normal
            .iter()
            .copied()
            .filter(|s| (0x3880_0000..0x477f_0000).contains(&(s[0] & 0x7fff_ffff)))
            .collect();
        check("v_cvt_sr_f16_f32", mode, &halves, |s| {
            let magnitude = (s[0] & 0x7fff_ffff) - (112 << 23) + (s[1] >> 19);
            s[0] >> 16 & 0x8000 | magnitude >> 13
        });
    }
    check("v_cvt_f32_bf16", MODES[0], &super::all_halves(), |s| {
        let nan = s[0] & 0x7fff > 0x7f80;
        s[0] << 16 | if nan { 1 << 22 } else { 0 }
    });
}

/// A pair rounds like two single conversions.
#[test]
pub fn pairs_of_halves_round_as_single_ones() {
    use super::exact::{HALF, Rule, SINGLE};
    let name = "v_cvt_pk_f16_f32";
    for mode in MODES {
        let [flush_source, flush_result] =
            [super::flushes(SINGLE, mode)[0], super::flushes(HALF, mode)[1]];
        check(name, mode, &samples(operation(name), 2000), |s| {
            let half = |bits| {
                let bits = super::flushed_if(flush_source, SINGLE, bits);
                let result = if SINGLE.is_nan(bits) {
                    bits >> 16 & 0x8000 | 0x7e00 | bits >> 13 & 0x3ff
                } else if SINGLE.is_infinite(bits) {
                    bits >> 16 & 0x8000 | 0x7c00
                } else {
                    Rule::from_mode(HALF, mode).rounded(&[SINGLE.term(bits)])
                };
                super::flushed_if(flush_result, HALF, result)
            };
            half(s[0]) | half(s[1]) << 16
        });
    }
}
