//! Reciprocals, roots, exponentials, logarithms, sine and cosine.
//!
//! Hardware guarantees error bounds; results here are computed in double precision, with IEEE
//! operations and with Rust functions that have the same bits on every host, and rounded once, to
//! nearest even in any mode.
//!
//! The single-precision operations except sine and cosine read and write denormals as zero in any
//! mode ("denormals are flushed"): LLVM scales arguments around them for that reason. The others
//! treat denormals according to MODE. An invalid operation returns the negative NaN (ISA manual,
//! functional examples of `V_LOG_F32`, `V_SQRT_F32`, `V_SIN_F32`).

use super::elementary::{cosine_of_part, exp2, log2, sine_of_part};
use super::row::operations;
use super::single::flush;
use crate::execute::lane::Accuracy;
use crate::execute::lane::binary16::to_f64;
use half::f16;
use std::f64::consts::TAU;

/// Computes a single-precision operation in double precision.
#[inline(always)]
fn single(a: f32, function: impl Fn(f64) -> f64) -> f32 {
    flush(function(f64::from(flush(a))) as f32)
}

#[inline(always)]
pub(super) fn reciprocal(a: f64) -> f64 {
    1.0 / a
}

#[inline(always)]
pub(super) fn reciprocal_root(a: f64) -> f64 {
    1.0 / a.sqrt()
}

/// Reciprocal root in double precision, within one unit in the last place: a step of Newton's
/// iteration on the quotient of two rounded operations, corrected by the rounding error of the
/// product.
#[inline(always)]
fn reciprocal_root_of_double(a: f64) -> f64 {
    let root = reciprocal_root(a);
    let product = a * root;
    let lost = a.mul_add(root, -product);
    let error = (-product).mul_add(root, 1.0) - lost * root;
    let better = (error * 0.5).mul_add(root, root);
    if better.is_finite() { better } else { root }
}

/// One unit in the last place, the bound that the manual states.
const ONE_UNIT: Accuracy = Accuracy { ulps: 1, stated: Some(1) };

/// One unit in the last place; the manual states no bound.
const ONE_UNIT_UNSTATED: Accuracy = Accuracy { ulps: 1, stated: None };

/// One unit in the last place; the manual states half of the bits.
const ONE_UNIT_OF_MANY: Accuracy = Accuracy { ulps: 1, stated: Some(1 << 29) };

operations! {
    /// Reciprocals and roots in single precision.
    ROOTS {
        denormals: Flushed, rounds: Fixed, nans: Negative, levels: each_level, accuracy: ONE_UNIT
    }

    "v_rcp_f32" (a: f32) -> f32 { single(a, reciprocal) }
    "v_rcp_iflag_f32" (a: f32) -> f32 { single(a, reciprocal) }
    "v_rsq_f32" (a: f32) -> f32 { single(a, reciprocal_root) }
    "v_sqrt_f32" (a: f32) -> f32 { single(a, f64::sqrt) }
}

operations! {
    /// Exponentials and logarithms in single precision.
    SINGLE {
        denormals: Flushed, rounds: Fixed, nans: Negative, levels: each_level, accuracy: ONE_UNIT
    }

    "v_exp_f32" (a: f32) -> f32 { single(a, exp2) }
    "v_exp_legacy_f32" (a: f32) -> f32 { single(a, exp2) }
    "v_log_f32" (a: f32) -> f32 { single(a, log2) }
    "v_log_legacy_f32" (a: f32) -> f32 { single(a, log2) }
}

operations! {
    /// Sine and cosine in single precision.
    TURNS {
        denormals: ByMode, rounds: Fixed, nans: Negative, levels: each_level,
        accuracy: ONE_UNIT_UNSTATED
    }

    "v_sin_f32" (a: f32) -> f32 { sine(a.into()) as f32 }
    "v_cos_f32" (a: f32) -> f32 { cosine(a.into()) as f32 }
}

operations! {
    /// Half precision.
    HALF {
        denormals: ByMode, rounds: Fixed, nans: Negative, levels: each_level, accuracy: ONE_UNIT
    }

    "v_rcp_f16" (a: f16; context) -> f16 { context.round.nearest_half(reciprocal(to_f64(a))) }
    "v_rsq_f16" (a: f16; context) -> f16 {
        context.round.nearest_half(reciprocal_root(to_f64(a)))
    }
    "v_sqrt_f16" (a: f16; context) -> f16 { context.round.nearest_half(to_f64(a).sqrt()) }
    "v_exp_f16" (a: f16; context) -> f16 { context.round.nearest_half(exp2(to_f64(a))) }
    "v_log_f16" (a: f16; context) -> f16 { context.round.nearest_half(log2(to_f64(a))) }
    "v_sin_f16" (a: f16; context) -> f16 { context.round.nearest_half(sine(to_f64(a))) }
    "v_cos_f16" (a: f16; context) -> f16 { context.round.nearest_half(cosine(to_f64(a))) }
}

operations! {
    /// Hyperbolic tangents (gfx1250).
    TANGENT {
        denormals: ByMode, rounds: Fixed, nans: Own, levels: plain_only,
        unsettled: "the nearest number, ties to even: no document states an accuracy"
    }

    "v_tanh_f32" (a: f32) -> f32 { libm::tanh(a.into()) as f32 }
    "v_tanh_f16" (a: f16; context) -> f16 { context.round.nearest_half(libm::tanh(to_f64(a))) }
}

operations! {
    /// Double precision. Hardware returns about half of the bits, from which compilers iterate;
    /// here reciprocal and root are correctly rounded.
    DOUBLE {
        denormals: ByMode, rounds: Fixed, nans: Negative, levels: each_level, accuracy: ONE_UNIT_OF_MANY
    }

    "v_rcp_f64" (a: f64) -> f64 { reciprocal(a) }
    "v_rsq_f64" (a: f64) -> f64 { reciprocal_root_of_double(a) }
    "v_sqrt_f64" (a: f64) -> f64 { a.sqrt() }
}

/// Sine of an angle in turns, of any size: LLVM does not reduce arguments for gfx9. Whole and half
/// turns return a zero with the angle's sign (IEEE 754, `sinPi`), as in the manual's examples
/// except for great angles, whose zero is positive.
#[inline(always)]
pub(super) fn sine(turns: f64) -> f64 {
    if turns.abs() > GREATEST_FRACTIONAL && turns.is_finite() {
        return 0.0;
    }
    let (quarter, rest) = quarters(turns);
    let sine = if quarter & 1 == 0 { sine_of_part(rest) } else { cosine_of_part(rest) };
    let sine = if quarter & 2 == 0 { sine } else { -sine };
    if sine == 0.0 { 0f64.copysign(turns) } else { sine }
}

/// Cosine of an angle in turns. A zero is positive.
#[inline(always)]
pub(super) fn cosine(turns: f64) -> f64 {
    let (quarter, rest) = quarters(turns);
    let cosine = if quarter & 1 == 0 { cosine_of_part(rest) } else { sine_of_part(rest) };
    let cosine = if (quarter + 1) & 2 == 0 { cosine } else { -cosine };
    cosine + 0.0
}

/// Above this, every single-precision number is an integer.
pub const GREATEST_FRACTIONAL: f64 = 8_388_608.0;

/// Nearest quarter turn, and the remainder in radians, at most an eighth of a turn. Differences in
/// turns are exact.
#[inline(always)]
fn quarters(turns: f64) -> (i32, f64) {
    let part = turns - turns.round_ties_even();
    let quarter = (part * 4.0).round_ties_even();
    (quarter as i32, (part - quarter / 4.0) * TAU)
}
