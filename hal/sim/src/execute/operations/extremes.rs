//! Minimum, maximum and median of gfx12 (RDNA 4 ISA, `V_MIN_NUM_F32`, `V_MINIMUM_F32` and those
//! composed of them), some of which gfx950 has (CDNA 4 ISA, `V_MINIMUM3_F32`). [`super::choice`]
//! has the NaN rules; MODE has no effect on them.

use super::choice::{
    maximum_number, maximum_or_nan, median_number, minimum_number, minimum_or_nan,
};
use super::row::operations;
use super::sources;
use crate::execute::lane::{LowHalf, Pair};
use half::f16;

operations! {
    /// Single precision.
    SINGLE { denormals: ByMode, rounds: Exact, nans: Own, levels: each_level, source: sources::DEFINED_BY_RDNA4 }

    "v_min_num_f32" (a: f32, b: f32) -> f32 { minimum_number(a, b) }
    "v_max_num_f32" (a: f32, b: f32) -> f32 { maximum_number(a, b) }
    "v_minimum_f32" (a: f32, b: f32) -> f32 { minimum_or_nan(a, b) }
    "v_maximum_f32" (a: f32, b: f32) -> f32 { maximum_or_nan(a, b) }
    "v_min3_num_f32" (a: f32, b: f32, c: f32) -> f32 { minimum_number(minimum_number(a, b), c) }
    "v_max3_num_f32" (a: f32, b: f32, c: f32) -> f32 { maximum_number(maximum_number(a, b), c) }
    "v_med3_num_f32" (a: f32, b: f32, c: f32) -> f32 { median_number(a, b, c) }
    "v_minmax_num_f32" (a: f32, b: f32, c: f32) -> f32 { maximum_number(minimum_number(a, b), c) }
    "v_maxmin_num_f32" (a: f32, b: f32, c: f32) -> f32 { minimum_number(maximum_number(a, b), c) }
    "v_minimum3_f32" (a: f32, b: f32, c: f32) -> f32 { minimum_or_nan(minimum_or_nan(a, b), c) }
    "v_maximum3_f32" (a: f32, b: f32, c: f32) -> f32 { maximum_or_nan(maximum_or_nan(a, b), c) }
    "v_minimummaximum_f32" (a: f32, b: f32, c: f32) -> f32 {
        maximum_or_nan(minimum_or_nan(a, b), c)
    }
    "v_maximumminimum_f32" (a: f32, b: f32, c: f32) -> f32 {
        minimum_or_nan(maximum_or_nan(a, b), c)
    }
}

operations! {
    /// Double precision.
    DOUBLE { denormals: ByMode, rounds: Exact, nans: Own, levels: each_level, source: sources::DEFINED_BY_RDNA4 }

    "v_min_num_f64" (a: f64, b: f64) -> f64 { minimum_number(a, b) }
    "v_max_num_f64" (a: f64, b: f64) -> f64 { maximum_number(a, b) }
    "v_minimum_f64" (a: f64, b: f64) -> f64 { minimum_or_nan(a, b) }
    "v_maximum_f64" (a: f64, b: f64) -> f64 { maximum_or_nan(a, b) }
}

operations! {
    /// Half precision.
    HALF { denormals: ByMode, rounds: Exact, nans: Own, levels: plain_only, source: sources::DEFINED_BY_RDNA4 }

    "v_min_num_f16" (a: f16, b: f16) -> LowHalf<f16> { LowHalf(minimum_number(a, b)) }
    "v_max_num_f16" (a: f16, b: f16) -> LowHalf<f16> { LowHalf(maximum_number(a, b)) }
    "v_minimum_f16" (a: f16, b: f16) -> LowHalf<f16> { LowHalf(minimum_or_nan(a, b)) }
    "v_maximum_f16" (a: f16, b: f16) -> LowHalf<f16> { LowHalf(maximum_or_nan(a, b)) }
    "v_min3_num_f16" (a: f16, b: f16, c: f16) -> LowHalf<f16> {
        LowHalf(minimum_number(minimum_number(a, b), c))
    }
    "v_max3_num_f16" (a: f16, b: f16, c: f16) -> LowHalf<f16> {
        LowHalf(maximum_number(maximum_number(a, b), c))
    }
    "v_med3_num_f16" (a: f16, b: f16, c: f16) -> LowHalf<f16> { LowHalf(median_number(a, b, c)) }
    "v_minmax_num_f16" (a: f16, b: f16, c: f16) -> LowHalf<f16> {
        LowHalf(maximum_number(minimum_number(a, b), c))
    }
    "v_maxmin_num_f16" (a: f16, b: f16, c: f16) -> LowHalf<f16> {
        LowHalf(minimum_number(maximum_number(a, b), c))
    }
    "v_minimum3_f16" (a: f16, b: f16, c: f16) -> LowHalf<f16> {
        LowHalf(minimum_or_nan(minimum_or_nan(a, b), c))
    }
    "v_maximum3_f16" (a: f16, b: f16, c: f16) -> LowHalf<f16> {
        LowHalf(maximum_or_nan(maximum_or_nan(a, b), c))
    }
    "v_minimummaximum_f16" (a: f16, b: f16, c: f16) -> LowHalf<f16> {
        LowHalf(maximum_or_nan(minimum_or_nan(a, b), c))
    }
    "v_maximumminimum_f16" (a: f16, b: f16, c: f16) -> LowHalf<f16> {
        LowHalf(minimum_or_nan(maximum_or_nan(a, b), c))
    }
}

operations! {
    /// Pairs of half-precision numbers.
    PACKED { denormals: ByMode, rounds: Exact, nans: Own, levels: each_level, source: sources::DEFINED_BY_RDNA4 }

    "v_pk_min_num_f16" (a: Pair<f16>, b: Pair<f16>) -> Pair<f16> {
        Pair(minimum_number(a.0, b.0), minimum_number(a.1, b.1))
    }
    "v_pk_max_num_f16" (a: Pair<f16>, b: Pair<f16>) -> Pair<f16> {
        Pair(maximum_number(a.0, b.0), maximum_number(a.1, b.1))
    }
    "v_pk_min3_num_f16" (a: Pair<f16>, b: Pair<f16>, c: Pair<f16>) -> Pair<f16> {
        Pair(
            minimum_number(minimum_number(a.0, b.0), c.0),
            minimum_number(minimum_number(a.1, b.1), c.1),
        )
    }
    "v_pk_max3_num_f16" (a: Pair<f16>, b: Pair<f16>, c: Pair<f16>) -> Pair<f16> {
        Pair(
            maximum_number(maximum_number(a.0, b.0), c.0),
            maximum_number(maximum_number(a.1, b.1), c.1),
        )
    }
    "v_pk_minimum_f16" (a: Pair<f16>, b: Pair<f16>) -> Pair<f16> {
        Pair(minimum_or_nan(a.0, b.0), minimum_or_nan(a.1, b.1))
    }
    "v_pk_maximum_f16" (a: Pair<f16>, b: Pair<f16>) -> Pair<f16> {
        Pair(maximum_or_nan(a.0, b.0), maximum_or_nan(a.1, b.1))
    }
    "v_pk_minimum3_f16" (a: Pair<f16>, b: Pair<f16>, c: Pair<f16>) -> Pair<f16> {
        Pair(
            minimum_or_nan(minimum_or_nan(a.0, b.0), c.0),
            minimum_or_nan(minimum_or_nan(a.1, b.1), c.1),
        )
    }
    "v_pk_maximum3_f16" (a: Pair<f16>, b: Pair<f16>, c: Pair<f16>) -> Pair<f16> {
        Pair(
            maximum_or_nan(maximum_or_nan(a.0, b.0), c.0),
            maximum_or_nan(maximum_or_nan(a.1, b.1), c.1),
        )
    }
}
