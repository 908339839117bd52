//! Reciprocals, roots, exponentials, logarithms, sine and cosine.
//!
//! Hardware states accuracies (1 ULP in single precision); results here are computed in double
//! precision, by IEEE operations and by pure-Rust functions that give the same bits on every
//! host, and rounded once.
//!
//! The single-precision operations read and write denormals as zero whatever the mode: LLVM
//! scales arguments around them for that reason. Half precision keeps denormals as the mode
//! asks.

use super::binary16::{from_f64, to_f64};
use super::operations;
use super::single::flush;
use crate::vector::VectorOperation;
use half::f16;
use std::f64::consts::TAU;

/// A single-precision operation by way of double precision.
#[inline(always)]
fn single(a: f32, function: impl Fn(f64) -> f64) -> f32 {
    flush(function(f64::from(flush(a))) as f32)
}

/// A half-precision operation by way of double precision.
#[inline(always)]
fn half(a: f16, function: impl Fn(f64) -> f64) -> f16 {
    from_f64(function(to_f64(a)))
}

#[inline(always)]
fn reciprocal(a: f64) -> f64 {
    1.0 / a
}

#[inline(always)]
fn reciprocal_root(a: f64) -> f64 {
    1.0 / a.sqrt()
}

operations! {
    /// Reciprocals and roots in single precision.
    ROOTS { flushes: false, settles: true, levels: of }

    "v_rcp_f32" (a: f32) -> f32 { single(a, reciprocal) }
    "v_rcp_iflag_f32" (a: f32) -> f32 { single(a, reciprocal) }
    "v_rsq_f32" (a: f32) -> f32 { single(a, reciprocal_root) }
    "v_sqrt_f32" (a: f32) -> f32 { single(a, f64::sqrt) }
}

operations! {
    /// The other functions in single precision. Their time is that of the functions called, which
    /// know one level only.
    SINGLE { flushes: false, settles: true, levels: of_plain }

    "v_exp_f32" (a: f32) -> f32 { single(a, libm::exp2) }
    "v_exp_legacy_f32" (a: f32) -> f32 { single(a, libm::exp2) }
    "v_log_f32" (a: f32) -> f32 { single(a, libm::log2) }
    "v_log_legacy_f32" (a: f32) -> f32 { single(a, libm::log2) }
    "v_sin_f32" (a: f32) -> f32 { single(a, sine) }
    "v_cos_f32" (a: f32) -> f32 { single(a, cosine) }
}

operations! {
    /// Half precision.
    HALF { flushes: true, settles: true, levels: of_plain }

    "v_rcp_f16" (a: f16) -> f16 { half(a, reciprocal) }
    "v_rsq_f16" (a: f16) -> f16 { half(a, reciprocal_root) }
    "v_sqrt_f16" (a: f16) -> f16 { half(a, f64::sqrt) }
    "v_exp_f16" (a: f16) -> f16 { half(a, libm::exp2) }
    "v_log_f16" (a: f16) -> f16 { half(a, libm::log2) }
    "v_sin_f16" (a: f16) -> f16 { half(a, sine) }
    "v_cos_f16" (a: f16) -> f16 { half(a, cosine) }
}

operations! {
    /// Double precision. Hardware gives about half of the bits, from which compilers iterate;
    /// these are correctly rounded (`v_rsq_f64` within 1 ULP).
    DOUBLE { flushes: true, settles: true, levels: of }

    "v_rcp_f64" (a: f64) -> f64 { reciprocal(a) }
    "v_rsq_f64" (a: f64) -> f64 { reciprocal_root(a) }
    "v_sqrt_f64" (a: f64) -> f64 { a.sqrt() }
}

/// The tables with the error that their operations keep, in units of the last place.
pub(super) static ACCURACY: [(&[VectorOperation], f32); 4] =
    [(ROOTS, 1.0), (SINGLE, 1.0), (HALF, 1.0), (DOUBLE, 1.0)];

/// The sine of an angle in turns; 0 beyond 256 turns (ISA manual, `V_SIN_F32`).
#[inline(always)]
fn sine(turns: f64) -> f64 {
    if turns.abs() > 256.0 && turns.is_finite() {
        return 0.0;
    }
    if turns == 0.0 {
        return turns;
    }
    let (quarter, rest) = quarters(turns);
    match quarter & 3 {
        0 => libm::sin(rest),
        1 => libm::cos(rest),
        2 => -libm::sin(rest),
        _ => -libm::cos(rest),
    }
}

/// The cosine of an angle in turns; 1 beyond 256 turns.
#[inline(always)]
fn cosine(turns: f64) -> f64 {
    if turns.abs() > 256.0 && turns.is_finite() {
        return 1.0;
    }
    let (quarter, rest) = quarters(turns);
    match quarter & 3 {
        0 => libm::cos(rest),
        1 => -libm::sin(rest),
        2 => -libm::cos(rest),
        _ => libm::sin(rest),
    }
}

/// The nearest quarter turn, and the rest in radians, at most an eighth of a turn. The
/// difference in turns is exact.
#[inline(always)]
fn quarters(turns: f64) -> (i32, f64) {
    let quarter = (turns * 4.0).round_ties_even();
    (quarter as i32, (turns - quarter / 4.0) * TAU)
}
