//! Dot products of the elements of two words, added to a third.

use super::{operations, single};
use crate::execute::lane::binary16::to_f32;
use crate::execute::lane::{LaneValue, Pair, binary16, settle};
use half::f16;

operations! {
    /// Integers. Products and sums are exact; the result wraps, or saturates with `clamp`.
    INTEGER { denormals: Kept, rounds: Exact, nans: Own, levels: of }

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

operations! {
    /// Half precision into single precision. MODE does not matter: sums are rounded to nearest
    /// even, denormal sources and results flushed (ISA manual, "Denormalized and Rounding
    /// Modes": `V_DOT2` operations "do not support denormal and rounding modes"). Products of
    /// half-precision numbers are exact in single precision; the sums are rounded one by one in
    /// the order in which the MI200's manual writes them, low product, high product, third
    /// source. (Manuals of later chips begin with the third source. No published measurement
    /// settles it.)
    FLOAT { denormals: Flushed, rounds: Fixed, nans: Own, levels: of }

    "v_dot2_f32_f16" (a: Pair<f16>, b: Pair<f16>, c: f32) -> f32 { dot2_f16(a, b, c) }
    "v_dot2c_f32_f16" (a: Pair<f16>, b: Pair<f16>, sum: f32) -> f32 { dot2_f16(a, b, sum) }
}

operations! {
    /// The same of bfloat16. The manual gives the sum and neither its order nor its roundings.
    BRAIN {
        denormals: Flushed, rounds: Fixed, nans: Own, levels: of,
        unsettled: "sums are rounded one by one, as those of half precision"
    }

    "v_dot2_f32_bf16" (a: Pair<u16>, b: Pair<u16>, c: f32) -> f32 { dot2_bf16(a, b, c) }
    "v_dot2c_f32_bf16" (a: Pair<u16>, b: Pair<u16>, sum: f32) -> f32 { dot2_bf16(a, b, sum) }
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
fn dot2_f16(a: Pair<f16>, b: Pair<f16>, c: f32) -> f32 {
    sum_of_products([a.0, a.1, b.0, b.1].map(|half| to_f32(binary16::flush(half))), c)
}

#[inline(always)]
fn dot2_bf16(a: Pair<u16>, b: Pair<u16>, c: f32) -> f32 {
    let single = |brain: u16| single::flush(f32::from_bits(u32::from(brain) << 16));
    sum_of_products([a.0, a.1, b.0, b.1].map(single), c)
}

#[inline(always)]
fn sum_of_products([a0, a1, b0, b1]: [f32; 4], c: f32) -> f32 {
    let c = single::flush(c);
    let first_nan = [a0, b0, a1, b1, c].into_iter().find_map(LaneValue::quiet_nan);
    single::flush(settle(a0 * b0 + a1 * b1 + c, first_nan))
}

#[inline(always)]
fn signed(exact: i64) -> i32 {
    exact.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

#[inline(always)]
fn unsigned(exact: u64) -> u32 {
    exact.min(u32::MAX.into()) as u32
}
