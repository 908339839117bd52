//! Conversions between 8-bit floating-point formats, bfloat16 and wider formats, also with
//! stochastic rounding (CDNA 3 ISA, "BF8 / FP8"; CDNA 4 ISA, "BF8 / FP8 and Smaller Formats and
//! Conversions"; RDNA 4 ISA, `V_CVT_F32_FP8` and others). The instruction's modifiers select the
//! byte that is read or written.
//!
//! Rows whose names end in `fnuz` are for targets with [`Float8::Fnuz`].

use super::row::operations;
use super::sources;
use crate::execute::lane::binary16::{from_f32, to_f32};
use crate::execute::lane::small_float::{Rounding, SmallFloat, e5m3, single_to_brain, widened};
use crate::execute::lane::{LowHalf, Pair};
use crate::wave::Mode;
use flipwave_isa::Float8;
use half::f16;

/// Rows of conversions from one 8-bit format.
macro_rules! from_bytes {
    ($($(#[$documentation:meta])* $table:ident: $single:literal $pair:literal $format:expr;)*) => {$(
        operations! {
            $(#[$documentation])*
            $table { denormals: Kept, rounds: Exact, nans: Own, levels: plain_only, source: sources::BYTES }

            $single (a: u32) -> f32 { $format.decode(a & 0xff) }
            $pair (a: u32) -> Pair<f32> {
                Pair($format.decode(a & 0xff), $format.decode(a >> 8 & 0xff))
            }
        }
    )*};
}

from_bytes! {
    /// Conversions from E4M3.
    FROM_FP8: "v_cvt_f32_fp8" "v_cvt_pk_f32_fp8" SmallFloat::fp8(Float8::Ocp);
    /// Conversions from E5M2.
    FROM_BF8: "v_cvt_f32_bf8" "v_cvt_pk_f32_bf8" SmallFloat::bf8(Float8::Ocp);
    /// Conversions from E4M3 without minus zero.
    FROM_FP8_FNUZ: "v_cvt_f32_fp8 fnuz" "v_cvt_pk_f32_fp8 fnuz" SmallFloat::fp8(Float8::Fnuz);
    /// Conversions from E5M2 without minus zero.
    FROM_BF8_FNUZ: "v_cvt_f32_bf8 fnuz" "v_cvt_pk_f32_bf8 fnuz" SmallFloat::bf8(Float8::Fnuz);
}

operations! {
    /// Conversion from E5M3, which `clamp` selects on gfx1250 (LLVM, `int_amdgcn_cvt_f32_fp8_e5m3`).
    FROM_E5M3 { denormals: Kept, rounds: Exact, nans: Own, levels: plain_only, source: sources::BYTES }

    "v_cvt_f32_fp8 clamp" (a: u32) -> u32 { e5m3(a).to_bits() }
}

operations! {
    /// Conversions of pairs, rounded to nearest even.
    PAIRS {
        denormals: ByMode, rounds: Fixed, nans: Own, levels: plain_only,
        unsettled: "a NaN keeps its sign"
    }

    "v_cvt_pk_fp8_f32" (a: f32, b: f32; context) -> LowHalf<u16> {
        bytes(SmallFloat::fp8(Float8::Ocp), a, b, context.mode)
    }
    "v_cvt_pk_bf8_f32" (a: f32, b: f32; context) -> LowHalf<u16> {
        bytes(SmallFloat::bf8(Float8::Ocp), a, b, context.mode)
    }
}

operations! {
    /// Conversions of pairs to formats whose NaN has no sign, and to bfloat16.
    SETTLED_PAIRS { denormals: ByMode, rounds: Fixed, nans: Own, levels: plain_only, source: sources::BYTES }

    "v_cvt_pk_fp8_f32 fnuz" (a: f32, b: f32; context) -> LowHalf<u16> {
        bytes(SmallFloat::fp8(Float8::Fnuz), a, b, context.mode)
    }
    "v_cvt_pk_bf8_f32 fnuz" (a: f32, b: f32; context) -> LowHalf<u16> {
        bytes(SmallFloat::bf8(Float8::Fnuz), a, b, context.mode)
    }
    "v_cvt_pk_bf16_f32" (a: f32, b: f32) -> Pair<u16> {
        Pair(single_to_brain(a), single_to_brain(b))
    }
    "v_cvt_pk_bf16_f32 clamp" (a: f32, b: f32; context) -> Pair<u16> {
        Pair(
            single_to_brain(clamped(a, context.mode)),
            single_to_brain(clamped(b, context.mode)),
        )
    }
}

operations! {
    /// Conversions of pairs to half precision. According to LLVM, MODE has the rounding direction.
    HALVES { denormals: ByMode, rounds: ByMode, nans: Own, levels: plain_only, source: sources::BY_MODE }

    "v_cvt_pk_f16_f32" (a: f32, b: f32; context) -> Pair<f16> {
        Pair(
            context.round.converted(a, from_f32),
            context.round.converted(b, from_f32),
        )
    }
}

operations! {
    /// Stochastic rounding of the first source with the random bits in the second source. Results
    /// are a byte each, or half a register.
    STOCHASTIC {
        denormals: ByMode, rounds: Fixed, nans: Own, levels: plain_only,
        unsettled: "what lies below a normal result's last place is cut from a denormal one first"
    }

    "v_cvt_sr_fp8_f32" (a: f32, random: u32; context) -> u32 {
        stochastic(SmallFloat::fp8(Float8::Ocp), a, random, context.mode)
    }
    "v_cvt_sr_bf8_f32" (a: f32, random: u32; context) -> u32 {
        stochastic(SmallFloat::bf8(Float8::Ocp), a, random, context.mode)
    }
    "v_cvt_sr_fp8_f32 fnuz" (a: f32, random: u32; context) -> u32 {
        stochastic(SmallFloat::fp8(Float8::Fnuz), a, random, context.mode)
    }
    "v_cvt_sr_bf8_f32 fnuz" (a: f32, random: u32; context) -> u32 {
        stochastic(SmallFloat::bf8(Float8::Fnuz), a, random, context.mode)
    }
    "v_cvt_sr_f16_f32" (a: f32, random: u32; context) -> LowHalf<u16> {
        LowHalf(stochastic(SmallFloat::F16, a, random, context.mode) as u16)
    }
    "v_cvt_sr_bf16_f32" (a: f32, random: u32) -> LowHalf<u16> {
        LowHalf(SmallFloat::BF16.encode(widened(a), Rounding::Stochastic(random), false) as u16)
    }
}

operations! {
    /// Conversions between 8 bits and half precision, and of two numbers with stochastic rounding
    /// (gfx1250). The number is exact in half precision; the instruction's modifiers select the
    /// byte or half that is read.
    FROM_BYTES_TO_HALVES { denormals: Kept, rounds: Exact, nans: Own, levels: plain_only, source: sources::BYTES }

    "v_cvt_f16_fp8" (a: u32) -> LowHalf<f16> { LowHalf(half(FP8, a)) }
    "v_cvt_f16_bf8" (a: u32) -> LowHalf<f16> { LowHalf(half(BF8, a)) }
    "v_cvt_pk_f16_fp8" (a: u32) -> Pair<f16> { Pair(half(FP8, a), half(FP8, a >> 8)) }
    "v_cvt_pk_f16_bf8" (a: u32) -> Pair<f16> { Pair(half(BF8, a), half(BF8, a >> 8)) }
}

operations! {
    /// Conversions of pairs of half precision to 8 bits.
    FROM_HALVES {
        denormals: ByMode, rounds: Fixed, nans: Own, levels: plain_only,
        unsettled: "a NaN keeps its sign"
    }

    "v_cvt_pk_fp8_f16" (a: Pair<f16>; context) -> LowHalf<u16> {
        bytes(FP8, to_f32(a.0), to_f32(a.1), context.mode)
    }
    "v_cvt_pk_bf8_f16" (a: Pair<f16>; context) -> LowHalf<u16> {
        bytes(BF8, to_f32(a.0), to_f32(a.1), context.mode)
    }
}

operations! {
    /// Stochastic rounding on gfx1250.
    NEWER_STOCHASTIC {
        denormals: ByMode, rounds: Fixed, nans: Own, levels: plain_only,
        unsettled: "both results of a pair have the same random bits, and what lies below a normal \
                    result's last place is cut from a denormal one first"
    }

    "v_cvt_sr_fp8_f16" (a: f16, random: u32; context) -> u32 {
        stochastic(FP8, to_f32(a), random, context.mode)
    }
    "v_cvt_sr_bf8_f16" (a: f16, random: u32; context) -> u32 {
        stochastic(BF8, to_f32(a), random, context.mode)
    }
    "v_cvt_sr_pk_f16_f32" (a: f32, b: f32, random: u32; context) -> Pair<u16> {
        let one = |value| stochastic(SmallFloat::F16, value, random, context.mode) as u16;
        Pair(one(a), one(b))
    }
    "v_cvt_sr_pk_bf16_f32" (a: f32, b: f32, random: u32) -> Pair<u16> {
        let one = |value| {
            SmallFloat::BF16.encode(widened(value), Rounding::Stochastic(random), false) as u16
        };
        Pair(one(a), one(b))
    }
}

operations! {
    /// Conversions from bfloat16.
    FROM_BRAIN { denormals: Kept, rounds: Exact, nans: Own, levels: plain_only, source: sources::DEFINED }

    "v_cvt_f32_bf16" (a: u16) -> f32 { SmallFloat::BF16.decode(a.into()) }
}

/// E4M3 of OCP.
pub(super) const FP8: SmallFloat = SmallFloat::fp8(Float8::Ocp);
/// E5M2 of OCP.
pub(super) const BF8: SmallFloat = SmallFloat::bf8(Float8::Ocp);

/// Converts a number of 8 bits to half precision.
fn half(format: SmallFloat, word: u32) -> f16 {
    from_f32(format.decode(word & 0xff))
}

/// Returns `true` if MODE clamps overflows of 8 and 16 bits.
pub(super) fn clamps(mode: Mode) -> bool {
    mode.0 & Mode::FP16_OVERFLOW != 0
}

#[inline(always)]
fn bytes(format: SmallFloat, a: f32, b: f32, mode: Mode) -> LowHalf<u16> {
    let byte = |value| format.encode(widened(value), Rounding::Nearest, clamps(mode)) as u16;
    LowHalf(byte(a) | byte(b) << 8)
}

#[inline(always)]
fn stochastic(format: SmallFloat, value: f32, random: u32, mode: Mode) -> u32 {
    format.encode(widened(value), Rounding::Stochastic(random), clamps(mode))
}

/// Clamps to between zero and one. Rounding afterwards has the same result as clamping the rounded
/// number.
#[inline(always)]
fn clamped(value: f32, mode: Mode) -> f32 {
    if value.is_nan() {
        if mode.dx10_clamp() { 0.0 } else { value }
    } else if value > 0.0 {
        value.min(1.0)
    } else {
        // Also turns minus zero into zero.
        0.0
    }
}
