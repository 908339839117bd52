//! Fused multiply-add in single precision whose sources may be half precision. The result is
//! rounded to single precision first, also where it then becomes half precision.

use super::binary16::from_f32;
use super::operations;
use crate::lane_value::{HighHalf, LaneValue, LowHalf, Mixed, settle};

operations! {
    /// Mixed precision.
    TABLE { flushes: true, settles: false, levels: of }

    "v_fma_mix_f32" (a: Mixed, b: Mixed, c: Mixed) -> f32 { fused(a, b, c) }
    "v_fma_mixlo_f16" (a: Mixed, b: Mixed, c: Mixed) -> LowHalf<half::f16> {
        LowHalf(from_f32(fused(a, b, c)))
    }
    "v_fma_mixhi_f16" (a: Mixed, b: Mixed, c: Mixed) -> HighHalf<half::f16> {
        HighHalf(from_f32(fused(a, b, c)))
    }
}

#[inline(always)]
fn fused(a: Mixed, b: Mixed, c: Mixed) -> f32 {
    let nan = || a.0.quiet_nan().or_else(|| b.0.quiet_nan()).or_else(|| c.0.quiet_nan());
    settle(a.0.mul_add(b.0, c.0), nan())
}
