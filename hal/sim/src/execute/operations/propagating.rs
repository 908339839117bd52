//! Minimum and maximum of three where a NaN wins (IEEE 754-2019, "minimum", "maximum"; CDNA 4 ISA,
//! "V_MINIMUM3_F32"): a signalling one before a quiet one, else the first. Minus zero is less than
//! plus zero.

use super::operations;
use crate::execute::lane::{Float, Pair};
use half::f16;

operations! {
    /// Single precision.
    SINGLE { denormals: ByMode, rounds: Exact, nans: Own, levels: of }

    "v_minimum3_f32" (a: f32, b: f32, c: f32) -> f32 { minimum(minimum(a, b), c) }
    "v_maximum3_f32" (a: f32, b: f32, c: f32) -> f32 { maximum(maximum(a, b), c) }
}

operations! {
    /// Pairs of half-precision numbers.
    HALF { denormals: ByMode, rounds: Exact, nans: Own, levels: of }

    "v_pk_minimum3_f16" (a: Pair<f16>, b: Pair<f16>, c: Pair<f16>) -> Pair<f16> {
        Pair(minimum(minimum(a.0, b.0), c.0), minimum(minimum(a.1, b.1), c.1))
    }
    "v_pk_maximum3_f16" (a: Pair<f16>, b: Pair<f16>, c: Pair<f16>) -> Pair<f16> {
        Pair(maximum(maximum(a.0, b.0), c.0), maximum(maximum(a.1, b.1), c.1))
    }
}

#[inline(always)]
fn minimum<T: Float>(a: T, b: T) -> T {
    choose(a, b, if b.above(a) | (!a.above(b) & a.negative()) { a } else { b })
}

#[inline(always)]
fn maximum<T: Float>(a: T, b: T) -> T {
    choose(a, b, if a.above(b) | (!b.above(a) & b.negative()) { a } else { b })
}

/// `number`, unless one of the two is a NaN.
#[inline(always)]
fn choose<T: Float>(a: T, b: T, number: T) -> T {
    if a.signalling() | (a.nan() & !b.signalling()) {
        a.quieted()
    } else if b.nan() {
        b.quieted()
    } else {
        number
    }
}
