//! Conversions (PTX ISA, "cvt", "cvt.pack").

use super::float::{Rounding, format_of};
use super::row::{Compute, each, low, one, signed};
use super::small_float::{Format, Small, by_format};
use crate::Gap;
use flipwave_ptx::{Form, ScalarType};
use rustc_apfloat::{Float as _, Round};

pub(super) fn compute(form: &Form) -> Result<Compute, Gap> {
    if form.has("pack") {
        return pack(form);
    }
    if let Some(found) = eighths(form) {
        return found;
    }
    // Types of 6 bits and less, and stochastic rounding.
    let [result, source] = form.types[..] else { return Err(Gap::form()) };
    if form.has("rs") || form.has("scaled") {
        return Err(Gap::form());
    }
    let rounding = Rounding::of(form);
    let is_finite = form.has("satfinite");
    if let ScalarType::F16x2 | ScalarType::Bf16x2 = result {
        if source != ScalarType::F32 {
            return Err(Gap::form());
        }
        let format = format_of(result).ok_or_else(Gap::form)?;
        let narrow = move |bits| narrowed(Format::F32, format, rounding, is_finite, bits);
        return Ok(each(move |[a, b]: [u64; 2]| narrow(a) << 16 | narrow(b)));
    }
    if result == ScalarType::Tf32 {
        return Ok(one(move |a| to_tf32(a, rounding)));
    }
    let integral = integral_rounding(form);
    match (format_of(result), format_of(source)) {
        (Some(to), Some(from)) => Ok(match integral {
            Some(round) => one(move |a| {
                let a = rounding.operand(from, a);
                let value = to.of_f64(rounded(from.to_f64(a), round));
                rounding.result(to, value, &[a])
            }),
            None => one(move |a| narrowed(from, to, rounding, is_finite, a)),
        }),
        (Some(to), None) => Ok(one(move |a| {
            let value = integer_value(a, source);
            let bits = by_format!(to, F => F::from_i128_r(value, rounding.round).value.to_bits());
            rounding.result(to, bits as u64, &[])
        })),
        (None, Some(from)) => {
            let round = integral.unwrap_or(Round::TowardZero);
            Ok(one(move |a| to_integer(from, result, round, rounding.operand(from, a))))
        }
        (None, None) => Ok(one(move |a| {
            let value = integer_value(a, source);
            let value = if rounding.saturates { saturated(value, result) } else { value };
            extended(value as u64, result)
        })),
    }
}

/// Conversions from and to two numbers of 8 bits; `None` for others.
fn eighths(form: &Form) -> Option<Result<Compute, Gap>> {
    let small = |name: &str| match name {
        "e4m3x2" => Some(Small::E4M3),
        "e5m2x2" => Some(Small::E5M2),
        _ => None,
    };
    let kind = form.modifiers().find_map(small)?;
    let types: Vec<&str> = form
        .modifiers()
        .filter(|name| small(name).is_some() || ScalarType::parse(name).is_some())
        .collect();
    let has_relu = form.has("relu");
    let narrow = move |value: f64| kind.of_f64(if has_relu && value < 0.0 { 0.0 } else { value });
    let half = |bits: u64| Format::F16.to_f64(bits & 0xffff);
    Some(match types[..] {
        ["e4m3x2" | "e5m2x2", "f32"] if form.has("satfinite") => {
            Ok(each(move |[a, b]: [u64; 2]| {
                let [a, b] = [a, b].map(|bits| narrow(Format::F32.to_f64(bits)));
                a << 8 | b
            }))
        }
        ["e4m3x2" | "e5m2x2", "f16x2"] if form.has("satfinite") => {
            Ok(one(move |a| narrow(half(a >> 16)) << 8 | narrow(half(a))))
        }
        ["f16x2", "e4m3x2" | "e5m2x2"] => Ok(one(move |a| {
            let wide = |bits: u64| {
                let value = kind.to_f64(bits as u8);
                let value = if has_relu && value < 0.0 { 0.0 } else { value };
                if value.is_nan() { Format::F16.nan() } else { Format::F16.of_f64(value) }
            };
            wide(a >> 8) << 16 | wide(a)
        })),
        _ => Err(Gap::form()),
    })
}

/// The direction of rounding to an integral number.
fn integral_rounding(form: &Form) -> Option<Round> {
    form.modifiers().find_map(|modifier| match modifier {
        "rni" => Some(Round::NearestTiesToEven),
        "rzi" => Some(Round::TowardZero),
        "rmi" => Some(Round::TowardNegative),
        "rpi" => Some(Round::TowardPositive),
        _ => None,
    })
}

fn rounded(value: f64, round: Round) -> f64 {
    match round {
        Round::TowardZero => value.trunc(),
        Round::TowardNegative => value.floor(),
        Round::TowardPositive => value.ceil(),
        Round::NearestTiesToAway => value.round(),
        Round::NearestTiesToEven => value.round_ties_even(),
    }
}

fn integer_value(bits: u64, kind: ScalarType) -> i128 {
    let bits = bits & low(kind.bits());
    if kind.is_signed() { signed(bits, kind.bits()).into() } else { bits.into() }
}

fn saturated(value: i128, kind: ScalarType) -> i128 {
    let bits = kind.bits();
    if kind.is_signed() {
        value.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        value.clamp(0, (1 << bits) - 1)
    }
}

/// A value of a type in a wider register.
fn extended(bits: u64, kind: ScalarType) -> u64 {
    if kind.is_signed() { signed(bits, kind.bits()) as u64 } else { bits & low(kind.bits()) }
}

/// Floating-point numbers beyond the range of the result become its least or greatest value. A NaN becomes
/// zero, or with 64 bits on either side only the highest bit is set.
fn to_integer(from: Format, result: ScalarType, round: Round, bits: u64) -> u64 {
    if from.is_nan(bits) {
        let is_wide = from == Format::F64 || result.bits() == 64;
        return if is_wide { extended(1 << (result.bits() - 1), result) } else { 0 };
    }
    // A cast saturates.
    let value = rounded(from.to_f64(bits), round) as i128;
    extended(saturated(value, result) as u64, result)
}

/// Converts between floating-point formats.
fn narrowed(from: Format, to: Format, rounding: Rounding, is_finite: bool, bits: u64) -> u64 {
    // `.ftz` concerns numbers in single precision only.
    let bits = if from == Format::F32 { rounding.operand(from, bits) } else { bits };
    if from.is_nan(bits) {
        if rounding.saturates {
            return 0;
        }
        return match (from, to) {
            // Numbers in double precision keep their NaNs.
            (_, Format::F64) => (from.to_f64(bits)).to_bits() | 1 << 51,
            _ => to.nan(),
        };
    }
    let result = if from == to {
        bits
    } else if rounding.round == Round::NearestTiesToEven {
        to.of_f64(from.to_f64(bits))
    } else {
        to.of_quad(from.to_quad(bits), rounding.round)
    };
    let flushing = Rounding { flushes: rounding.flushes && to == Format::F32, ..rounding };
    let result = flushing.result(to, result, &[bits]);
    let is_infinite = result & !to.sign() == to.infinity();
    if is_finite && is_infinite { result - 1 } else { result }
}

/// Rounds to the 10 bits of fraction of `.tf32`; the other bits are zero.
fn to_tf32(bits: u64, rounding: Rounding) -> u64 {
    const REST: u64 = 0x1fff;
    if Format::F32.is_nan(bits) {
        return Format::F32.nan();
    }
    let added = match rounding.round {
        Round::NearestTiesToAway => 0x1000,
        Round::NearestTiesToEven => 0xfff + (bits >> 13 & 1),
        _ => 0,
    };
    let is_infinite = bits & !Format::F32.sign() == Format::F32.infinity();
    let result = if is_infinite { bits } else { (bits + added) & !REST };
    if rounding.has_relu && result & Format::F32.sign() != 0 { 0 } else { result }
}

/// `cvt.pack`: two saturated integers, above a third operand for 8 bits.
fn pack(form: &Form) -> Result<Compute, Gap> {
    let (Some(result), Some(source)) = (form.types.first().copied(), form.types.get(1).copied())
    else {
        return Err(Gap::form());
    };
    let bits = result.bits();
    if !matches!(bits, 8 | 16) || format_of(source).is_some() {
        return Err(Gap::form());
    }
    let part = move |value: u64| saturated(integer_value(value, source), result) as u64 & low(bits);
    Ok(each(move |[a, b, c]: [u64; 3]| {
        let both = part(a) << bits | part(b);
        if bits == 8 { c << 16 & low(32) | both } else { both }
    }))
}
