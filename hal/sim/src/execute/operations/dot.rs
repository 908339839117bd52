//! Dot products of the elements of two words, added to a third.

use super::row::operations;
use super::{single, summed_dot};
use crate::execute::lane::binary16::to_f32;
use crate::execute::lane::small_float::{Rounding, SmallFloat, brain_to_single, single_to_brain};
use crate::execute::lane::{LaneValue, LowHalf, Pair, binary16, settle};
use flipwave_isa::Float8;
use half::f16;

const FP8: SmallFloat = SmallFloat::fp8(Float8::Ocp);
const BF8: SmallFloat = SmallFloat::bf8(Float8::Ocp);

operations! {
    /// Integers. Products and sums are exact; the result wraps, or saturates with `clamp`.
    INTEGER { denormals: Kept, rounds: Exact, nans: Own, levels: each_level }

    "v_dot2_i32_i16" (a: Pair<i16>, b: Pair<i16>, c: i32) -> i32 { dot2_i16(a, b, c) as i32 }
    "v_dot2c_i32_i16" (a: Pair<i16>, b: Pair<i16>, sum: i32) -> i32 {
        dot2_i16(a, b, sum) as i32
    }
    "v_dot2_i32_i16 clamp" (a: Pair<i16>, b: Pair<i16>, c: i32) -> i32 {
        signed(dot2_i16(a, b, c))
    }
    "v_dot2c_i32_i16 clamp" (a: Pair<i16>, b: Pair<i16>, sum: i32) -> i32 {
        signed(dot2_i16(a, b, sum))
    }
    "v_dot2_u32_u16" (a: Pair<u16>, b: Pair<u16>, c: u32) -> u32 { dot2_u16(a, b, c) as u32 }
    "v_dot2_u32_u16 clamp" (a: Pair<u16>, b: Pair<u16>, c: u32) -> u32 {
        unsigned(dot2_u16(a, b, c))
    }
    "v_dot4_i32_i8" (a: i32, b: i32, c: i32) -> i32 { dot_signed::<8>(a, b, c) as i32 }
    "v_dot4c_i32_i8" (a: i32, b: i32, sum: i32) -> i32 { dot_signed::<8>(a, b, sum) as i32 }
    "v_dot4_i32_i8 clamp" (a: i32, b: i32, c: i32) -> i32 { signed(dot_signed::<8>(a, b, c)) }
    "v_dot4c_i32_i8 clamp" (a: i32, b: i32, sum: i32) -> i32 {
        signed(dot_signed::<8>(a, b, sum))
    }
    "v_dot4_u32_u8" (a: u32, b: u32, c: u32) -> u32 { dot_unsigned::<8>(a, b, c) as u32 }
    "v_dot4_u32_u8 clamp" (a: u32, b: u32, c: u32) -> u32 {
        unsigned(dot_unsigned::<8>(a, b, c))
    }
    "v_dot8_i32_i4" (a: i32, b: i32, c: i32) -> i32 { dot_signed::<4>(a, b, c) as i32 }
    "v_dot8c_i32_i4" (a: i32, b: i32, sum: i32) -> i32 { dot_signed::<4>(a, b, sum) as i32 }
    "v_dot8_i32_i4 clamp" (a: i32, b: i32, c: i32) -> i32 { signed(dot_signed::<4>(a, b, c)) }
    "v_dot8c_i32_i4 clamp" (a: i32, b: i32, sum: i32) -> i32 {
        signed(dot_signed::<4>(a, b, sum))
    }
    "v_dot8_u32_u4" (a: u32, b: u32, c: u32) -> u32 { dot_unsigned::<4>(a, b, c) as u32 }
    "v_dot8_u32_u4 clamp" (a: u32, b: u32, c: u32) -> u32 {
        unsigned(dot_unsigned::<4>(a, b, c))
    }
}

/// Unsettled behaviour of sums whose order a manual's formula gives.
const IN_LINE: &str = "sums are rounded one by one, from left to right as the manual writes them";
/// Unsettled behaviour of sums for which the manual gives steps.
const IN_STEPS: &str = "sums are rounded one by one in the manual's order, the third source first";

/// Rows of half precision into single precision, with a suffix in their names, and their functions.
macro_rules! halves {
    ($($(#[$documentation:meta])* $table:ident $word:literal $denormals:ident $unsettled:expr, $dot:expr;)*) => {$(
        operations! {
            $(#[$documentation])*
            $table {
                denormals: $denormals, rounds: Fixed, nans: Own, levels: each_level, unsettled: $unsettled
            }

            { concat!("v_dot2_f32_f16", $word) } (a: Pair<f16>, b: Pair<f16>, c: f32) -> f32 {
                $dot(a, b, c)
            }
            { concat!("v_dot2c_f32_f16", $word) } (a: Pair<f16>, b: Pair<f16>, sum: f32) -> f32 {
                $dot(a, b, sum)
            }
        }
    )*};
}

// MODE has no effect (ISA manual, "Denormalized and Rounding Modes": `V_DOT2` operations "do not
// support denormal and rounding modes"). Products of half-precision numbers are exact in single
// precision.
halves! {
    /// gfx906, gfx908, gfx10. Denormal sources of half precision are kept: of the chips that AMD
    /// tested, only gfx90a flushes them (llvm-project pull request 205101).
    HALVES "" Flushed IN_LINE, |a, b, c| in_line(kept(a), kept(b), c);
    /// gfx90a, which flushes denormals in every mode.
    HALVES_GFX90A " gfx90a" Flushed IN_LINE, |a, b, c| in_line(flushed(a), flushed(b), c);
    /// gfx940 and later chips of its generation.
    HALVES_GFX940 " gfx940" Kept IN_STEPS, |a, b, c| in_steps(kept(a), kept(b), c);
}

operations! {
    /// Bfloat16 of gfx950.
    BRAIN { denormals: Kept, rounds: Fixed, nans: Own, levels: each_level, unsettled: IN_STEPS }

    "v_dot2_f32_bf16" (a: Pair<u16>, b: Pair<u16>, c: f32) -> f32 {
        in_steps(brains(a), brains(b), c)
    }
    "v_dot2c_f32_bf16" (a: Pair<u16>, b: Pair<u16>, sum: f32) -> f32 {
        in_steps(brains(a), brains(b), sum)
    }
}

/// Rows of a generation whose sums were measured.
macro_rules! measured {
    ($($(#[$documentation:meta])* $table:ident $word:literal $dot:ident $source:literal;)*) => {$(
        operations! {
            $(#[$documentation])*
            $table {
                denormals: Kept, rounds: Fixed, nans: Own, levels: plain_only, source: $source
            }

            { concat!("v_dot2_f32_f16", $word) } (a: Pair<u16>, b: Pair<u16>, c: f32) -> f32 {
                summed_dot::$dot(&summed_dot::HALF, a, b, c)
            }
            { concat!("v_dot2c_f32_f16", $word) } (a: Pair<u16>, b: Pair<u16>, sum: f32) -> f32 {
                summed_dot::$dot(&summed_dot::HALF, a, b, sum)
            }
            { concat!("v_dot2_f32_bf16", $word) } (a: Pair<u16>, b: Pair<u16>, c: f32) -> f32 {
                summed_dot::$dot(&summed_dot::BRAIN, a, b, c)
            }
            { concat!("v_dot2acc_f32_bf16", $word) } (a: Pair<u16>, b: Pair<u16>, sum: f32) -> f32 {
                summed_dot::$dot(&summed_dot::BRAIN, a, b, sum)
            }
        }
    )*};
}

measured! {
    /// RDNA 3 and 3.5.
    MEASURED_GFX11 " gfx11" gfx11 "measured on gfx1151 and gfx1100: ROCm/rocm-systems issue 12056";
    /// RDNA 4.
    MEASURED_GFX12 " gfx12" gfx12
        "measured on gfx1201: ROCm/rocm-systems issue 12056 and pull request 12120";
}

operations! {
    /// Half precision of RDNA 4 into half precision, also measured.
    SHORT_GFX12 {
        denormals: Kept, rounds: Fixed, nans: Own, levels: plain_only,
        source: "measured on gfx1201: ROCm/rocm-systems issue 12056 and pull request 12120"
    }

    "v_dot2_f16_f16 gfx12" (a: Pair<u16>, b: Pair<u16>, c: f16; context) -> LowHalf<f16> {
        LowHalf(summed_dot::gfx12_half(a, b, c, context.mode))
    }
}

operations! {
    /// Sums in the order of the manual: the third source, the low product, the high product (RDNA 3
    /// ISA, `V_DOT2_F16_F16`). No document specifies the rounding of the steps or the treatment of
    /// denormals. For bfloat16 public sources disagree: Triton assumes that the products of
    /// `V_DOT2_BF16_BF16` are rounded to nearest even, AMD's rocjitsu truncates them for gfx1201.
    NEWER {
        denormals: Kept, rounds: Fixed, nans: Own, levels: plain_only,
        unsettled: "each step is rounded once, denormals are kept"
    }

    "v_dot2_bf16_bf16" (a: Pair<u16>, b: Pair<u16>, c: u16) -> LowHalf<u16> {
        let step = |sum: u16, a: u16, b: u16| {
            let [a, b, sum] = [a, b, sum].map(brain_to_single);
            let exact = f64::from(a) * f64::from(b);
            let first_nan = [a, b, sum].into_iter().find(|value| value.is_nan());
            match first_nan {
                Some(nan) => single_to_brain(nan),
                None => {
                    let sum = binary16::sum_to_odd(exact, sum.into());
                    SmallFloat::BF16.encode(sum, Rounding::Nearest, false) as u16
                }
            }
        };
        LowHalf(step(step(c, a.0, b.0), a.1, b.1))
    }
    "v_dot2_f16_f16" (a: Pair<f16>, b: Pair<f16>, c: f16) -> LowHalf<f16> {
        let step = |sum: f16, a: f16, b: f16| {
            let first_nan = [a, b, sum].into_iter().find_map(LaneValue::quiet_nan);
            settle(binary16::multiply_add(a, b, sum), first_nan)
        };
        LowHalf(step(step(c, a.0, b.0), a.1, b.1))
    }
    "v_dot2acc_f32_bf16" (a: Pair<u16>, b: Pair<u16>, sum: f32) -> f32 {
        in_steps(brains(a), brains(b), sum)
    }
    "v_dot4_f32_fp8_fp8" (a: u32, b: u32, c: f32) -> f32 { dot4(a, b, c, FP8, FP8) }
    "v_dot4_f32_fp8_bf8" (a: u32, b: u32, c: f32) -> f32 { dot4(a, b, c, FP8, BF8) }
    "v_dot4_f32_bf8_fp8" (a: u32, b: u32, c: f32) -> f32 { dot4(a, b, c, BF8, FP8) }
    "v_dot4_f32_bf8_bf8" (a: u32, b: u32, c: f32) -> f32 { dot4(a, b, c, BF8, BF8) }
}

/// Dot products of integers whose sources are signed or unsigned according to the bits of `neg_lo`:
/// a row for each combination, and for saturation (RDNA 3 ISA, `V_DOT4_I32_IU8`).
macro_rules! mixed_signs {
    ($table:ident, $name:literal, $bits:literal) => {
        operations! {
            /// Integers with either signedness.
            $table { denormals: Kept, rounds: Exact, nans: Own, levels: plain_only }

            { concat!($name, " 0") } (a: u32, b: u32, c: i32) -> i32 {
                dot_mixed::<$bits>(a, b, c, 0) as i32
            }
            { concat!($name, " 1") } (a: u32, b: u32, c: i32) -> i32 {
                dot_mixed::<$bits>(a, b, c, 1) as i32
            }
            { concat!($name, " 2") } (a: u32, b: u32, c: i32) -> i32 {
                dot_mixed::<$bits>(a, b, c, 2) as i32
            }
            { concat!($name, " 3") } (a: u32, b: u32, c: i32) -> i32 {
                dot_mixed::<$bits>(a, b, c, 3) as i32
            }
            { concat!($name, " 0 clamp") } (a: u32, b: u32, c: i32) -> i32 {
                signed(dot_mixed::<$bits>(a, b, c, 0))
            }
            { concat!($name, " 1 clamp") } (a: u32, b: u32, c: i32) -> i32 {
                signed(dot_mixed::<$bits>(a, b, c, 1))
            }
            { concat!($name, " 2 clamp") } (a: u32, b: u32, c: i32) -> i32 {
                signed(dot_mixed::<$bits>(a, b, c, 2))
            }
            { concat!($name, " 3 clamp") } (a: u32, b: u32, c: i32) -> i32 {
                signed(dot_mixed::<$bits>(a, b, c, 3))
            }
        }
    };
}

mixed_signs!(MIXED_BYTES, "v_dot4_i32_iu8", 8);
mixed_signs!(MIXED_NIBBLES, "v_dot8_i32_iu4", 4);

/// Dot product; bit i of `signs` means that source i is signed.
#[inline(always)]
fn dot_mixed<const BITS: u32>(a: u32, b: u32, c: i32, signs: u8) -> i64 {
    let mut sum = i64::from(c);
    for i in 0..32 / BITS {
        let element = |word: u32, source: u8| -> i64 {
            let high = word << (32 - BITS - i * BITS);
            if signs >> source & 1 != 0 {
                (high as i32 >> (32 - BITS)).into()
            } else {
                (high >> (32 - BITS)).into()
            }
        };
        sum += element(a, 0) * element(b, 1);
    }
    sum
}

/// A step of a dot product in single precision.
#[inline(always)]
fn fused_step(sum: f32, a: f32, b: f32) -> f32 {
    let first_nan = [a, b, sum].into_iter().find_map(LaneValue::quiet_nan);
    settle(a.mul_add(b, sum), first_nan)
}

/// The products added to the third source, the low one first.
#[inline(always)]
fn in_steps(a: [f32; 2], b: [f32; 2], c: f32) -> f32 {
    fused_step(fused_step(c, a[0], b[0]), a[1], b[1])
}

#[inline(always)]
fn dot4(a: u32, b: u32, c: f32, left: SmallFloat, right: SmallFloat) -> f32 {
    let bytes = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    bytes.fold(c, |sum, (a, b)| fused_step(sum, left.decode(a.into()), right.decode(b.into())))
}

#[inline(always)]
fn dot2_i16(a: Pair<i16>, b: Pair<i16>, c: i32) -> i64 {
    i64::from(a.0) * i64::from(b.0) + i64::from(a.1) * i64::from(b.1) + i64::from(c)
}

#[inline(always)]
fn dot2_u16(a: Pair<u16>, b: Pair<u16>, c: u32) -> u64 {
    u64::from(a.0) * u64::from(b.0) + u64::from(a.1) * u64::from(b.1) + u64::from(c)
}

#[inline(always)]
fn dot_signed<const BITS: u32>(a: i32, b: i32, c: i32) -> i64 {
    let mut sum = 0;
    for i in 0..32 / BITS {
        let element = |word: i32| word << (32 - BITS - i * BITS) >> (32 - BITS);
        sum += element(a) * element(b);
    }
    i64::from(sum) + i64::from(c)
}

#[inline(always)]
fn dot_unsigned<const BITS: u32>(a: u32, b: u32, c: u32) -> u64 {
    let mut sum = 0;
    for i in 0..32 / BITS {
        let element = |word: u32| word >> (i * BITS) & ((1 << BITS) - 1);
        sum += element(a) * element(b);
    }
    u64::from(sum) + u64::from(c)
}

#[inline(always)]
fn kept(halves: Pair<f16>) -> [f32; 2] {
    [halves.0, halves.1].map(to_f32)
}

#[inline(always)]
fn flushed(halves: Pair<f16>) -> [f32; 2] {
    [halves.0, halves.1].map(|half| to_f32(binary16::flush(half)))
}

#[inline(always)]
fn brains(brains: Pair<u16>) -> [f32; 2] {
    [brains.0, brains.1].map(brain_to_single)
}

/// Adds the low product, the high one and the third source, flushing denormals of single precision.
#[inline(always)]
fn in_line(a: [f32; 2], b: [f32; 2], c: f32) -> f32 {
    let c = single::flush(c);
    let first_nan = [a[0], b[0], a[1], b[1], c].into_iter().find_map(LaneValue::quiet_nan);
    single::flush(settle(a[0] * b[0] + a[1] * b[1] + c, first_nan))
}

#[inline(always)]
fn signed(exact: i64) -> i32 {
    exact.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

#[inline(always)]
fn unsigned(exact: u64) -> u32 {
    exact.min(u32::MAX.into()) as u32
}
