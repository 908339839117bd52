//! Conversions with a scale, where one lane's numbers fit into one or two registers (CDNA 4 ISA,
//! "BF8 / FP8 and Smaller Formats and Conversions"). The scale is the exponent of a
//! single-precision number: narrowing conversions divide by it first, widening ones multiply by it
//! afterwards. Sign and mantissa of the scale are ignored; an exponent of all ones is a NaN.
//!
//! Byte results are written to the byte that `op_sel` selects.

use super::row::operations;
use super::small_float::clamps;
use super::sources;
use crate::execute::lane::binary16::to_f32;
use crate::execute::lane::rounding::Rounder;
use crate::execute::lane::small_float::{Rounding, SmallFloat, brain_to_single, power, widened};
use crate::execute::lane::{LowHalf, Pair};
use crate::wave::Mode;
use flipwave_isa::Float8;
use half::f16;

const FP8: SmallFloat = SmallFloat::fp8(Float8::Ocp);
const BF8: SmallFloat = SmallFloat::bf8(Float8::Ocp);

operations! {
    /// Conversions to 8 and 4 bits.
    NARROWING { denormals: ByMode, rounds: Fixed, nans: Own, levels: plain_only, source: sources::SCALED }

    "v_cvt_scalef32_pk_fp8_f32" (a: f32, b: f32, scale: u32; context) -> LowHalf<u16> {
        bytes(FP8, [a, b], scale, context.mode)
    }
    "v_cvt_scalef32_pk_bf8_f32" (a: f32, b: f32, scale: u32; context) -> LowHalf<u16> {
        bytes(BF8, [a, b], scale, context.mode)
    }
    "v_cvt_scalef32_pk_fp8_f16" (a: Pair<f16>, scale: u32; context) -> LowHalf<u16> {
        bytes(FP8, halves(a), scale, context.mode)
    }
    "v_cvt_scalef32_pk_bf8_f16" (a: Pair<f16>, scale: u32; context) -> LowHalf<u16> {
        bytes(BF8, halves(a), scale, context.mode)
    }
    "v_cvt_scalef32_pk_fp4_f32" (a: f32, b: f32, scale: u32) -> u32 {
        quarters([a, b], [Rounding::Nearest; 2], scale)
    }
    "v_cvt_scalef32_pk_fp4_f16" (a: Pair<f16>, scale: u32) -> u32 {
        quarters(halves(a), [Rounding::Nearest; 2], scale)
    }
}

operations! {
    /// Conversions from bfloat16, whose denormals are kept.
    NARROWING_BRAIN { denormals: Kept, rounds: Fixed, nans: Own, levels: plain_only, source: sources::SCALED }

    "v_cvt_scalef32_pk_fp8_bf16" (a: Pair<u16>, scale: u32; context) -> LowHalf<u16> {
        bytes(FP8, brains(a), scale, context.mode)
    }
    "v_cvt_scalef32_pk_bf8_bf16" (a: Pair<u16>, scale: u32; context) -> LowHalf<u16> {
        bytes(BF8, brains(a), scale, context.mode)
    }
    "v_cvt_scalef32_pk_fp4_bf16" (a: Pair<u16>, scale: u32) -> u32 {
        quarters(brains(a), [Rounding::Nearest; 2], scale)
    }
}

operations! {
    /// Conversions with stochastic rounding.
    STOCHASTIC {
        denormals: ByMode, rounds: Fixed, nans: Own, levels: plain_only,
        unsettled: "what lies below a normal result's last place is cut from a denormal one first"
    }

    "v_cvt_scalef32_sr_fp8_f32" (a: f32, random: u32, scale: u32; context) -> u32 {
        stochastic(FP8, a, random, scale, context.mode)
    }
    "v_cvt_scalef32_sr_bf8_f32" (a: f32, random: u32, scale: u32; context) -> u32 {
        stochastic(BF8, a, random, scale, context.mode)
    }
    "v_cvt_scalef32_sr_fp8_f16" (a: f16, random: u32, scale: u32; context) -> u32 {
        stochastic(FP8, to_f32(a), random, scale, context.mode)
    }
    "v_cvt_scalef32_sr_bf8_f16" (a: f16, random: u32, scale: u32; context) -> u32 {
        stochastic(BF8, to_f32(a), random, scale, context.mode)
    }
    "v_cvt_scalef32_sr_pk_fp4_f32" (a: Pair<f32>, random: u32, scale: u32) -> u32 {
        quarters([a.0, a.1], successive(random), scale)
    }
    "v_cvt_scalef32_sr_pk_fp4_f16" (a: Pair<f16>, random: u32, scale: u32) -> u32 {
        quarters(halves(a), successive(random), scale)
    }
}

operations! {
    /// Conversions from bfloat16 with stochastic rounding.
    STOCHASTIC_BRAIN {
        denormals: Kept, rounds: Fixed, nans: Own, levels: plain_only,
        unsettled: "what lies below a normal result's last place is cut from a denormal one first"
    }

    "v_cvt_scalef32_sr_fp8_bf16" (a: u16, random: u32, scale: u32; context) -> u32 {
        stochastic(FP8, brain_to_single(a), random, scale, context.mode)
    }
    "v_cvt_scalef32_sr_bf8_bf16" (a: u16, random: u32, scale: u32; context) -> u32 {
        stochastic(BF8, brain_to_single(a), random, scale, context.mode)
    }
    "v_cvt_scalef32_sr_pk_fp4_bf16" (a: Pair<u16>, random: u32, scale: u32) -> u32 {
        quarters(brains(a), successive(random), scale)
    }
}

operations! {
    /// Conversions from 8 and 4 bits to single precision and bfloat16. MODE has no effect.
    WIDENING { denormals: Kept, rounds: Fixed, nans: Own, levels: plain_only, source: sources::SCALED }

    "v_cvt_scalef32_f32_fp8" (a: u32, scale: u32) -> f32 { single(FP8, a & 0xff, scale) }
    "v_cvt_scalef32_f32_bf8" (a: u32, scale: u32) -> f32 { single(BF8, a & 0xff, scale) }
    "v_cvt_scalef32_pk_f32_fp8" (a: u32, scale: u32) -> Pair<f32> { singles(FP8, a, scale) }
    "v_cvt_scalef32_pk_f32_bf8" (a: u32, scale: u32) -> Pair<f32> { singles(BF8, a, scale) }
    "v_cvt_scalef32_pk_f32_fp4" (a: u32, scale: u32) -> Pair<f32> {
        singles(SmallFloat::FP4, a, scale)
    }
    "v_cvt_scalef32_pk_bf16_fp8" (a: u32, scale: u32) -> Pair<u16> { to_brains(FP8, a, scale) }
    "v_cvt_scalef32_pk_bf16_bf8" (a: u32, scale: u32) -> Pair<u16> { to_brains(BF8, a, scale) }
    "v_cvt_scalef32_pk_bf16_fp4" (a: u32, scale: u32) -> Pair<u16> {
        to_brains(SmallFloat::FP4, a, scale)
    }
}

operations! {
    /// Conversions from 8 and 4 bits to half precision, rounded to nearest even.
    TO_HALVES { denormals: Kept, rounds: Fixed, nans: Own, levels: plain_only, source: sources::SCALED }

    "v_cvt_scalef32_f16_fp8" (a: u32, scale: u32; context) -> LowHalf<f16> {
        LowHalf(context.round.nearest_half(product(FP8, a & 0xff, scale)))
    }
    "v_cvt_scalef32_f16_bf8" (a: u32, scale: u32; context) -> LowHalf<f16> {
        LowHalf(context.round.nearest_half(product(BF8, a & 0xff, scale)))
    }
    "v_cvt_scalef32_pk_f16_fp8" (a: u32, scale: u32; context) -> Pair<f16> {
        to_halves(context.round, FP8, a, scale)
    }
    "v_cvt_scalef32_pk_f16_bf8" (a: u32, scale: u32; context) -> Pair<f16> {
        to_halves(context.round, BF8, a, scale)
    }
    "v_cvt_scalef32_pk_f16_fp4" (a: u32, scale: u32; context) -> Pair<f16> {
        to_halves(context.round, SmallFloat::FP4, a, scale)
    }
}

/// Next random number of `v_prng_b32`: a step of a linear-feedback shift register (CDNA 4 ISA,
/// `V_PRNG_B32`).
#[inline(always)]
pub(super) fn next_random(bits: u32) -> u32 {
    bits << 1 ^ if bits >> 31 != 0 { 197 } else { 0 }
}

/// Random numbers for consecutive numbers: according to the manual each pass uses a new one, as
/// from `v_prng_b32`; it does not define a pass.
#[inline(always)]
fn successive(random: u32) -> [Rounding; 2] {
    [Rounding::Stochastic(random), Rounding::Stochastic(next_random(random))]
}

/// Exponent of a scale; `None` for a NaN.
#[inline(always)]
fn exponent(scale: u32) -> Option<i32> {
    let field = (scale >> 23 & 0xff) as i32;
    (field != 0xff).then_some(field - 127)
}

/// Divides a number by a scale, exactly.
#[inline(always)]
pub(super) fn divided(value: f32, scale: u32) -> f64 {
    match exponent(scale) {
        Some(_) if value.is_nan() => widened(value),
        Some(exponent) => f64::from(value) * power(-exponent),
        None => f64::from_bits(0x7ff8 << 48),
    }
}

/// Multiplies a number of a small format by a scale, exactly.
#[inline(always)]
pub(super) fn product(format: SmallFloat, bits: u32, scale: u32) -> f64 {
    match exponent(scale) {
        Some(exponent) if !format.is_nan(bits) => f64::from(format.decode(bits)) * power(exponent),
        _ => f64::from_bits(0x7ff8 << 48),
    }
}

/// Multiplies a number of a small format by a scale, in single precision.
#[inline(always)]
pub(super) fn single(format: SmallFloat, bits: u32, scale: u32) -> f32 {
    let product = product(format, bits, scale);
    if product.is_nan() { f32::from_bits(0x7fc0_0000) } else { product as f32 }
}

/// The lowest two numbers of a word.
#[inline(always)]
fn two(format: SmallFloat, word: u32) -> [u32; 2] {
    [0, format.bits].map(|at| word >> at & ((1 << format.bits) - 1))
}

#[inline(always)]
fn singles(format: SmallFloat, word: u32, scale: u32) -> Pair<f32> {
    let [low, high] = two(format, word).map(|bits| single(format, bits, scale));
    Pair(low, high)
}

#[inline(always)]
fn to_brains(format: SmallFloat, word: u32, scale: u32) -> Pair<u16> {
    let [low, high] = two(format, word).map(|bits| {
        SmallFloat::BF16.encode(product(format, bits, scale), Rounding::Nearest, false) as u16
    });
    Pair(low, high)
}

#[inline(always)]
fn to_halves(round: impl Rounder, format: SmallFloat, word: u32, scale: u32) -> Pair<f16> {
    let [low, high] =
        two(format, word).map(|bits| round.nearest_half(product(format, bits, scale)));
    Pair(low, high)
}

#[inline(always)]
fn halves(pair: Pair<f16>) -> [f32; 2] {
    [to_f32(pair.0), to_f32(pair.1)]
}

#[inline(always)]
fn brains(pair: Pair<u16>) -> [f32; 2] {
    [brain_to_single(pair.0), brain_to_single(pair.1)]
}

#[inline(always)]
fn bytes(format: SmallFloat, values: [f32; 2], scale: u32, mode: Mode) -> LowHalf<u16> {
    let [low, high] = values
        .map(|value| format.encode(divided(value, scale), Rounding::Nearest, clamps(mode)) as u16);
    LowHalf(low | high << 8)
}

#[inline(always)]
fn quarters(values: [f32; 2], roundings: [Rounding; 2], scale: u32) -> u32 {
    let one = |at: usize| SmallFloat::FP4.encode(divided(values[at], scale), roundings[at], false);
    one(0) | one(1) << 4
}

#[inline(always)]
fn stochastic(format: SmallFloat, value: f32, random: u32, scale: u32, mode: Mode) -> u32 {
    format.encode(divided(value, scale), Rounding::Stochastic(random), clamps(mode))
}
