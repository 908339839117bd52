//! Arithmetic in bfloat16 (gfx1250; LLVM's `FeatureBF16PackedInsts`, `FeatureBF16TransInsts`). No
//! document states which bits of MODE affect it.

use super::choice::{maximum_number, minimum_number};
use super::elementary::{exp2, log2};
use super::row::operations;
use super::transcendental::{cosine, reciprocal, reciprocal_root, sine};
use crate::execute::lane::rounding::Rounder;
use crate::execute::lane::small_float::{Rounding, SmallFloat, brain_to_single, single_to_brain};
use crate::execute::lane::{HighHalf, LaneValue, LowHalf, MixedBrain, Pair, settle};

operations! {
    /// Sums and products of pairs.
    ARITHMETIC {
        denormals: Kept, rounds: Exact, nans: Own, levels: plain_only,
        unsettled: "rounded once, to nearest even, denormals kept, whatever MODE says"
    }

    "v_pk_add_bf16" (a: Pair<u16>, b: Pair<u16>) -> Pair<u16> { both(a, b, b, sum) }
    "v_pk_mul_bf16" (a: Pair<u16>, b: Pair<u16>) -> Pair<u16> { both(a, b, b, product) }
    "v_pk_fma_bf16" (a: Pair<u16>, b: Pair<u16>, c: Pair<u16>) -> Pair<u16> {
        both(a, b, c, fused)
    }
    "v_pk_add_bf16 clamp" (a: Pair<u16>, b: Pair<u16>) -> Pair<u16> {
        clamped(both(a, b, b, sum))
    }
    "v_pk_mul_bf16 clamp" (a: Pair<u16>, b: Pair<u16>) -> Pair<u16> {
        clamped(both(a, b, b, product))
    }
    "v_pk_fma_bf16 clamp" (a: Pair<u16>, b: Pair<u16>, c: Pair<u16>) -> Pair<u16> {
        clamped(both(a, b, c, fused))
    }
    "v_pk_min_num_bf16" (a: Pair<u16>, b: Pair<u16>) -> Pair<u16> { chosen(a, b, minimum_number) }
    "v_pk_max_num_bf16" (a: Pair<u16>, b: Pair<u16>) -> Pair<u16> { chosen(a, b, maximum_number) }
    "v_pk_min_num_bf16 clamp" (a: Pair<u16>, b: Pair<u16>) -> Pair<u16> {
        clamped(chosen(a, b, minimum_number))
    }
    "v_pk_max_num_bf16 clamp" (a: Pair<u16>, b: Pair<u16>) -> Pair<u16> {
        clamped(chosen(a, b, maximum_number))
    }
}

operations! {
    /// Operations mixed with single precision. As with half precision, the result is rounded to
    /// single precision first: LLVM selects these for `fptrunc (fma ...)`.
    MIXED { denormals: ByMode, rounds: SingleFirst, nans: Own, levels: plain_only,
        unsettled: "the second rounding is to nearest even, and keeps denormals"
    }

    "v_fma_mix_f32_bf16" (a: MixedBrain, b: MixedBrain, c: MixedBrain; context) -> f32 {
        mixed(context.round, a, b, c)
    }
    "v_fma_mixlo_bf16" (a: MixedBrain, b: MixedBrain, c: MixedBrain; context) -> LowHalf<u16> {
        LowHalf(single_to_brain(mixed(context.round, a, b, c)))
    }
    "v_fma_mixhi_bf16" (a: MixedBrain, b: MixedBrain, c: MixedBrain; context) -> HighHalf<u16> {
        HighHalf(single_to_brain(mixed(context.round, a, b, c)))
    }
}

operations! {
    /// Reciprocals, roots, exponentials and similar functions.
    TRANSCENDENTAL {
        denormals: Kept, rounds: Exact, nans: Own, levels: plain_only,
        unsettled: "the nearest number, ties to even, denormals kept, whatever MODE says"
    }

    "v_rcp_bf16" (a: u16) -> LowHalf<u16> { of(a, reciprocal) }
    "v_rsq_bf16" (a: u16) -> LowHalf<u16> { of(a, reciprocal_root) }
    "v_sqrt_bf16" (a: u16) -> LowHalf<u16> { of(a, f64::sqrt) }
    "v_exp_bf16" (a: u16) -> LowHalf<u16> { of(a, exp2) }
    "v_log_bf16" (a: u16) -> LowHalf<u16> { of(a, log2) }
    "v_sin_bf16" (a: u16) -> LowHalf<u16> { of(a, sine) }
    "v_cos_bf16" (a: u16) -> LowHalf<u16> { of(a, cosine) }
    "v_tanh_bf16" (a: u16) -> LowHalf<u16> { of(a, libm::tanh) }
}

#[inline(always)]
fn both(
    a: Pair<u16>,
    b: Pair<u16>,
    c: Pair<u16>,
    operation: impl Fn([f64; 3]) -> f64,
) -> Pair<u16> {
    let one = |a: u16, b: u16, c: u16| {
        let values = [a, b, c].map(brain_to_single);
        match values.into_iter().find(|value| value.is_nan()) {
            Some(nan) => single_to_brain(nan),
            None => {
                SmallFloat::BF16.encode(operation(values.map(f64::from)), Rounding::Nearest, false)
                    as u16
            }
        }
    };
    Pair(one(a.0, b.0, c.0), one(a.1, b.1, c.1))
}

fn sum([a, b, _]: [f64; 3]) -> f64 {
    odd_sum(a, b)
}

/// The product, which is exact: it has sixteen digits.
fn product([a, b, _]: [f64; 3]) -> f64 {
    a * b
}

fn fused([a, b, c]: [f64; 3]) -> f64 {
    odd_sum(a * b, c)
}

/// The sum rounded to odd, so that a second rounding to fewer digits is correct: an inexact sum has
/// its last digit set (Boldo and Melquiond, "When double rounding is odd").
fn odd_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let of_b = sum - a;
    let lost = (a - (sum - of_b)) + (b - of_b);
    if lost == 0.0 || !sum.is_finite() || sum.to_bits() & 1 != 0 {
        return sum;
    }
    // Away from zero if the lost part has the sign of the sum.
    let away = (lost < 0.0) == (sum < 0.0);
    f64::from_bits(if away { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
}

#[inline(always)]
fn chosen(a: Pair<u16>, b: Pair<u16>, operation: impl Fn(f32, f32) -> f32) -> Pair<u16> {
    let one = |a: u16, b: u16| single_to_brain(operation(brain_to_single(a), brain_to_single(b)));
    Pair(one(a.0, b.0), one(a.1, b.1))
}

/// Clamps to between zero and one; NaN becomes zero, as in all operations since gfx12.
fn clamped(pair: Pair<u16>) -> Pair<u16> {
    let one = |bits: u16| {
        let value = brain_to_single(bits);
        single_to_brain(if value > 0.0 { value.min(1.0) } else { 0.0 })
    };
    Pair(one(pair.0), one(pair.1))
}

#[inline(always)]
fn mixed(round: impl Rounder, a: MixedBrain, b: MixedBrain, c: MixedBrain) -> f32 {
    let nan = || a.quiet_nan().or_else(|| b.quiet_nan()).or_else(|| c.quiet_nan());
    settle(round.fused(a.0, b.0, c.0), nan())
}

fn of(a: u16, function: impl Fn(f64) -> f64) -> LowHalf<u16> {
    let value = brain_to_single(a);
    if value.is_nan() {
        return LowHalf(single_to_brain(value));
    }
    let result = function(value.into());
    LowHalf(SmallFloat::BF16.encode(result, Rounding::Nearest, false) as u16)
}
