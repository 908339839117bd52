//! Packed operations, which apply an operation to two elements.

use super::choice::{maximum, minimum};
use super::row::operations;
use super::sources;
use crate::execute::lane::rounding::{Number, Rounder};
use crate::execute::lane::{Float, LaneValue, Pair, settle};
use half::f16;

operations! {
    /// Pairs of 16-bit integers.
    INTEGER { denormals: Kept, rounds: Exact, nans: Own, levels: each_level }

    "v_pk_add_u16" (a: Pair<u16>, b: Pair<u16>) -> Pair<u16> { both(a, b, u16::wrapping_add) }
    "v_pk_sub_u16" (a: Pair<u16>, b: Pair<u16>) -> Pair<u16> { both(a, b, u16::wrapping_sub) }
    "v_pk_add_i16" (a: Pair<i16>, b: Pair<i16>) -> Pair<i16> { both(a, b, i16::wrapping_add) }
    "v_pk_sub_i16" (a: Pair<i16>, b: Pair<i16>) -> Pair<i16> { both(a, b, i16::wrapping_sub) }
    "v_pk_mul_lo_u16" (a: Pair<u16>, b: Pair<u16>) -> Pair<u16> {
        both(a, b, u16::wrapping_mul)
    }
    "v_pk_mad_u16" (a: Pair<u16>, b: Pair<u16>, c: Pair<u16>) -> Pair<u16> {
        both(both(a, b, u16::wrapping_mul), c, u16::wrapping_add)
    }
    "v_pk_mad_i16" (a: Pair<i16>, b: Pair<i16>, c: Pair<i16>) -> Pair<i16> {
        both(both(a, b, i16::wrapping_mul), c, i16::wrapping_add)
    }
    "v_pk_lshlrev_b16" (by: Pair<u16>, a: Pair<u16>) -> Pair<u16> {
        both(by, a, |by, a| a << (by & 15))
    }
    "v_pk_lshrrev_b16" (by: Pair<u16>, a: Pair<u16>) -> Pair<u16> {
        both(by, a, |by, a| a >> (by & 15))
    }
    "v_pk_ashrrev_i16" (by: Pair<i16>, a: Pair<i16>) -> Pair<i16> {
        both(by, a, |by, a| a >> (by & 15))
    }
    "v_pk_min_u16" (a: Pair<u16>, b: Pair<u16>) -> Pair<u16> { both(a, b, u16::min) }
    "v_pk_max_u16" (a: Pair<u16>, b: Pair<u16>) -> Pair<u16> { both(a, b, u16::max) }
    "v_pk_min_i16" (a: Pair<i16>, b: Pair<i16>) -> Pair<i16> { both(a, b, i16::min) }
    "v_pk_max_i16" (a: Pair<i16>, b: Pair<i16>) -> Pair<i16> { both(a, b, i16::max) }
    "v_pk_min3_u16" (a: Pair<u16>, b: Pair<u16>, c: Pair<u16>) -> Pair<u16> {
        both(both(a, b, u16::min), c, u16::min)
    }
    "v_pk_max3_u16" (a: Pair<u16>, b: Pair<u16>, c: Pair<u16>) -> Pair<u16> {
        both(both(a, b, u16::max), c, u16::max)
    }
    "v_pk_min3_i16" (a: Pair<i16>, b: Pair<i16>, c: Pair<i16>) -> Pair<i16> {
        both(both(a, b, i16::min), c, i16::min)
    }
    "v_pk_max3_i16" (a: Pair<i16>, b: Pair<i16>, c: Pair<i16>) -> Pair<i16> {
        both(both(a, b, i16::max), c, i16::max)
    }
    // The sums saturate (LLVM, `ThreeOp_OpSelClampPats`).
    "v_pk_add_max_i16" (a: Pair<i16>, b: Pair<i16>, c: Pair<i16>) -> Pair<i16> {
        both(both(a, b, i16::saturating_add), c, i16::max)
    }
    "v_pk_add_min_i16" (a: Pair<i16>, b: Pair<i16>, c: Pair<i16>) -> Pair<i16> {
        both(both(a, b, i16::saturating_add), c, i16::min)
    }
    "v_pk_add_max_u16" (a: Pair<u16>, b: Pair<u16>, c: Pair<u16>) -> Pair<u16> {
        both(both(a, b, u16::saturating_add), c, u16::max)
    }
    "v_pk_add_min_u16" (a: Pair<u16>, b: Pair<u16>, c: Pair<u16>) -> Pair<u16> {
        both(both(a, b, u16::saturating_add), c, u16::min)
    }
}

operations! {
    /// Pairs of half-precision numbers.
    HALF { denormals: ByMode, rounds: ByMode, nans: Own, levels: each_level, source: sources::ROUNDED_ONCE }

    "v_pk_add_f16" (a: Pair<f16>, b: Pair<f16>; context) -> Pair<f16> {
        both_settled(a, b, |a, b| context.round.sum(a, b))
    }
    "v_pk_mul_f16" (a: Pair<f16>, b: Pair<f16>; context) -> Pair<f16> {
        both_settled(a, b, |a, b| context.round.product(a, b))
    }
    "v_pk_fma_f16" (a: Pair<f16>, b: Pair<f16>, c: Pair<f16>; context) -> Pair<f16> {
        fused(context.round, a, b, c)
    }
    "v_pk_fmac_f16" (a: Pair<f16>, b: Pair<f16>, sum: Pair<f16>; context) -> Pair<f16> {
        fused(context.round, a, b, sum)
    }
}

operations! {
    /// Operations on half-precision pairs that return one of the sources.
    CHOICE { denormals: ByMode, rounds: Exact, nans: Own, levels: each_level, source: sources::DEFINED }

    "v_pk_min_f16" (a: Pair<f16>, b: Pair<f16>; context) -> Pair<f16> {
        Pair(minimum(a.0, b.0, context.mode), minimum(a.1, b.1, context.mode))
    }
    "v_pk_max_f16" (a: Pair<f16>, b: Pair<f16>; context) -> Pair<f16> {
        Pair(maximum(a.0, b.0, context.mode), maximum(a.1, b.1, context.mode))
    }
}

operations! {
    /// Pairs of single-precision numbers.
    SINGLE { denormals: ByMode, rounds: ByMode, nans: Own, levels: each_level, source: sources::ROUNDED_ONCE }

    "v_pk_add_f32" (a: Pair<f32>, b: Pair<f32>; context) -> Pair<f32> {
        both_settled(a, b, |a, b| context.round.sum(a, b))
    }
    "v_pk_mul_f32" (a: Pair<f32>, b: Pair<f32>; context) -> Pair<f32> {
        both_settled(a, b, |a, b| context.round.product(a, b))
    }
    "v_pk_fma_f32" (a: Pair<f32>, b: Pair<f32>, c: Pair<f32>; context) -> Pair<f32> {
        fused(context.round, a, b, c)
    }
}

operations! {
    /// Moves of two words. `op_sel` selects the word of each source; sources have the selected word
    /// first.
    MOVES { denormals: Kept, rounds: Exact, nans: Own, levels: each_level }

    "v_pk_mov_b32" (a: Pair<u32>, b: Pair<u32>) -> Pair<u32> { Pair(a.0, b.0) }
}

#[inline(always)]
fn both<T: Copy>(a: Pair<T>, b: Pair<T>, operation: impl Fn(T, T) -> T) -> Pair<T> {
    Pair(operation(a.0, b.0), operation(a.1, b.1))
}

/// Applies `operation` to both elements and settles NaN results. Functions rather than closures
/// around `operation`, so that all of it is inlined.
#[inline(always)]
fn both_settled<T: Float + LaneValue>(
    a: Pair<T>,
    b: Pair<T>,
    operation: impl Fn(T, T) -> T,
) -> Pair<T> {
    Pair(settled(operation(a.0, b.0), a.0, b.0, b.0), settled(operation(a.1, b.1), a.1, b.1, b.1))
}

#[inline(always)]
fn fused<T: Number + LaneValue>(
    round: impl Rounder,
    a: Pair<T>,
    b: Pair<T>,
    c: Pair<T>,
) -> Pair<T> {
    Pair(
        settled(round.fused(a.0, b.0, c.0), a.0, b.0, c.0),
        settled(round.fused(a.1, b.1, c.1), a.1, b.1, c.1),
    )
}

/// Replaces a NaN result by the first source NaN.
#[inline(always)]
fn settled<T: Float + LaneValue>(result: T, a: T, b: T, c: T) -> T {
    settle(result, a.quiet_nan().or(b.quiet_nan()).or(c.quiet_nan()))
}
