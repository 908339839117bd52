//! Conversions, checked against exact ones.

use std::ops::RangeInclusive;

use super::exact::{DOUBLE, Direction, Format, HALF, Rule, SINGLE, Term};
use super::{
    DEFAULT_MODE, MODES, Sources, all_halves, check, flushed_if, flushes, operation, samples,
};

/// Converts a number of one format to another.
fn narrowed(from: Format, rule: Rule, bits: u64) -> u64 {
    let to = rule.format;
    let sign = if from.is_negative(bits) { to.sign() } else { 0 };
    if from.is_nan(bits) {
        // The payload keeps its high bits.
        let payload = bits & ((1 << from.mantissa) - 1);
        let moved = if from.mantissa > to.mantissa {
            payload >> (from.mantissa - to.mantissa)
        } else {
            payload << (to.mantissa - from.mantissa)
        };
        sign | to.infinity() | to.quiet_bit() | moved
    } else if from.is_infinite(bits) {
        sign | to.infinity()
    } else {
        rule.rounded(&[from.term(bits)])
    }
}

#[test]
pub fn format_conversions_match_reference() {
    let names = [
        ("v_cvt_f16_f32", SINGLE, HALF),
        ("v_cvt_f32_f16", HALF, SINGLE),
        ("v_cvt_f32_f64", DOUBLE, SINGLE),
        ("v_cvt_f64_f32", SINGLE, DOUBLE),
    ];
    for (name, from, to) in names {
        let samples = if from == HALF { all_halves() } else { samples(operation(name), 10_000) };
        for mode in MODES {
            let (flush_source, flush_result) = (flushes(from, mode)[0], flushes(to, mode)[1]);
            check(name, mode, &samples, |s| {
                let source = flushed_if(flush_source, from, s[0]);
                flushed_if(flush_result, to, narrowed(from, Rule::from_mode(to, mode), source))
            });
        }
    }
}

#[test]
pub fn integer_to_float_matches_reference() {
    type Integer = fn(u64) -> i128;
    let names: [(&str, Format, Integer); 11] = [
        ("v_cvt_f32_i32", SINGLE, |bits| (bits as i32).into()),
        ("v_cvt_f32_u32", SINGLE, |bits| (bits as u32).into()),
        ("v_cvt_f64_i32", DOUBLE, |bits| (bits as i32).into()),
        ("v_cvt_f64_u32", DOUBLE, |bits| (bits as u32).into()),
        ("v_cvt_f16_i16", HALF, |bits| (bits as i16).into()),
        ("v_cvt_f16_u16", HALF, |bits| (bits as u16).into()),
        ("v_cvt_f32_ubyte0", SINGLE, |bits| (bits & 0xff).into()),
        ("v_cvt_f32_ubyte1", SINGLE, |bits| (bits >> 8 & 0xff).into()),
        ("v_cvt_f32_ubyte2", SINGLE, |bits| (bits >> 16 & 0xff).into()),
        ("v_cvt_f32_ubyte3", SINGLE, |bits| (bits >> 24 & 0xff).into()),
        ("v_cvt_off_f32_i4", SINGLE, |bits| i128::from(bits & 15) - i128::from(bits & 8) * 2),
    ];
    for (name, format, integer) in names {
        for mode in MODES {
            check(name, mode, &samples(operation(name), 4000), |s| {
                let mut term = Term::integer(integer(s[0]));
                if name == "v_cvt_off_f32_i4" {
                    term.exponent -= 4;
                }
                Rule::from_mode(format, mode).rounded(&[term])
            });
        }
    }
}

/// Returns a finite number times `scale` as a multiple of 2^-60. Out-of-range numbers are
/// truncated.
fn scaled(format: Format, bits: u64, scale: i128) -> i128 {
    let term = format.term(bits);
    let digits = term.digits as i128 * scale;
    let shift = term.exponent + 60;
    let magnitude = match shift {
        100.. => i128::MAX >> 1,
        0.. => digits.checked_mul(1 << shift).unwrap_or(i128::MAX >> 1),
        // The truncated bits become a sticky bit.
        _ => {
            let by = (-shift).min(100);
            digits >> by | i128::from(digits & ((1 << by) - 1) != 0)
        }
    };
    if term.negative { -magnitude } else { magnitude }
}

#[derive(Clone, Copy, PartialEq)]
enum Rounding {
    TowardsZero,
    Down,
    Up,
    HalfUp,
    HalfEven,
}

/// Converts a number to an integer that saturates to `range`.
fn integer(
    format: Format,
    bits: u64,
    scale: i128,
    rounding: Rounding,
    range: RangeInclusive<i128>,
) -> u64 {
    let (least, most) = range.into_inner();
    if format.is_nan(bits) {
        return 0;
    }
    if format.is_infinite(bits) {
        return (if format.is_negative(bits) { least } else { most }) as u64;
    }
    const ONE: i128 = 1 << 60;
    let value = scaled(format, bits, scale);
    let whole = match rounding {
        Rounding::TowardsZero => value / ONE,
        Rounding::Down => value.div_euclid(ONE),
        Rounding::Up => -(-value).div_euclid(ONE),
        Rounding::HalfUp => (value + ONE / 2).div_euclid(ONE),
        Rounding::HalfEven => {
            let (floor, rest) = (value.div_euclid(ONE), value.rem_euclid(ONE));
            floor + i128::from(rest > ONE / 2 || rest == ONE / 2 && floor & 1 != 0)
        }
    };
    whole.clamp(least, most) as u64
}

const I32: RangeInclusive<i128> = -(1 << 31)..=(1 << 31) - 1;
const U32: RangeInclusive<i128> = 0..=(1 << 32) - 1;
const I16: RangeInclusive<i128> = -(1 << 15)..=(1 << 15) - 1;
const U16: RangeInclusive<i128> = 0..=(1 << 16) - 1;
const SIGNED_NORMAL: RangeInclusive<i128> = -32767..=32767;

#[test]
pub fn float_to_integer_matches_reference() {
    use Rounding::{Down, HalfEven, HalfUp, TowardsZero};
    let names = [
        ("v_cvt_i32_f32", SINGLE, 1, TowardsZero, I32),
        ("v_cvt_u32_f32", SINGLE, 1, TowardsZero, U32),
        ("v_cvt_i32_f64", DOUBLE, 1, TowardsZero, I32),
        ("v_cvt_u32_f64", DOUBLE, 1, TowardsZero, U32),
        ("v_cvt_i16_f16", HALF, 1, TowardsZero, I16),
        ("v_cvt_u16_f16", HALF, 1, TowardsZero, U16),
        ("v_cvt_flr_i32_f32", SINGLE, 1, Down, I32),
        ("v_cvt_rpi_i32_f32", SINGLE, 1, HalfUp, I32),
        ("v_cvt_norm_i16_f16", HALF, 32767, HalfEven, SIGNED_NORMAL),
        ("v_cvt_norm_u16_f16", HALF, 65535, HalfEven, U16),
    ];
    for (name, format, scale, rounding, range) in names {
        let samples = if format == HALF { all_halves() } else { samples(operation(name), 10_000) };
        let mask = if name.contains("16_f16") { 0xffff } else { 0xffff_ffff };
        // The rounding direction is ignored; denormal flushing matters if a number is rounded down.
        for mode in MODES {
            let flush = flushes(format, mode)[0];
            check(name, mode, &samples, |s| {
                let source = flushed_if(flush, format, s[0]);
                integer(format, source, scale, rounding, range.clone()) & mask
            });
        }
    }
}

#[test]
pub fn packing_matches_reference() {
    use Rounding::HalfEven;
    let normals = [
        ("v_cvt_pknorm_i16_f32", SINGLE, 32767, SIGNED_NORMAL),
        ("v_cvt_pknorm_u16_f32", SINGLE, 65535, U16),
        ("v_cvt_pknorm_i16_f16", HALF, 32767, SIGNED_NORMAL),
        ("v_cvt_pknorm_u16_f16", HALF, 65535, U16),
    ];
    for (name, format, scale, range) in normals {
        check(name, DEFAULT_MODE, &samples(operation(name), 4000), |s| {
            let one = |bits| integer(format, bits, scale, HalfEven, range.clone()) & 0xffff;
            one(s[0]) | one(s[1]) << 16
        });
    }
    check("v_cvt_pk_u16_u32", DEFAULT_MODE, &samples(operation("v_cvt_pk_u16_u32"), 1000), |s| {
        s[0].min(0xffff) | s[1].min(0xffff) << 16
    });
    check("v_cvt_pk_i16_i32", DEFAULT_MODE, &samples(operation("v_cvt_pk_i16_i32"), 1000), |s| {
        let one = |bits: u64| (bits as i32).clamp(-32768, 32767) as u16;
        u64::from(one(s[0])) | u64::from(one(s[1])) << 16
    });
    check("v_pack_b32_f16", DEFAULT_MODE, &samples(operation("v_pack_b32_f16"), 1000), |s| {
        let one = |bits| if HALF.is_nan(bits) { bits | HALF.quiet_bit() } else { bits };
        one(s[0]) | one(s[1]) << 16
    });
}

/// Conversion to a byte of a word, with the single-precision rounding of MODE.
#[test]
pub fn byte_conversion_matches_reference() {
    for name in ["v_cvt_pk_u8_f32", "v_cvt_pkaccum_u8_f32"] {
        for mode in MODES {
            let rounding = match Rule::from_mode(SINGLE, mode).direction {
                Direction::Even => Rounding::HalfEven,
                Direction::Up => Rounding::Up,
                Direction::Down => Rounding::Down,
                Direction::Zero => Rounding::TowardsZero,
            };
            let flush = flushes(SINGLE, mode)[0];
            check(name, mode, &samples(operation(name), 4000), |s| {
                let shift = 8 * (s[1] & 3);
                let source = flushed_if(flush, SINGLE, s[0]);
                s[2] & !(0xff << shift) | integer(SINGLE, source, 1, rounding, 0..=255) << shift
            });
        }
    }
}

#[test]
pub fn cvt_pkrtz_rounds_towards_zero() {
    let towards_zero = |bits: u64| {
        let sign = bits >> 16 & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        if SINGLE.is_nan(bits) || SINGLE.is_infinite(bits) {
            return narrowed(SINGLE, Rule::nearest(HALF), bits);
        }
        // The greatest half-precision number that is not greater than the source.
        let mut low = 0u64;
        let mut high = 0x7bff;
        while low < high {
            let middle = (low + high).div_ceil(2);
            if narrowed(HALF, Rule::nearest(SINGLE), middle) <= magnitude {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        sign | low
    };
    let name = "v_cvt_pkrtz_f16_f32";
    for mode in [DEFAULT_MODE, MODES[2], MODES[3]] {
        check(name, mode, &samples(operation(name), 4000), |s: &Sources| {
            towards_zero(s[0]) | towards_zero(s[1]) << 16
        });
    }
}
