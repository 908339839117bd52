//! Fused multiply-add in single precision whose sources may be half precision. The result is
//! rounded to single precision first, even if it is then converted to half precision: LLVM selects
//! these for `fptrunc (fma ...)`. The second rounding is that of half precision, and overflows only
//! if the first did not.

use super::row::operations;
use super::sources;
use crate::execute::lane::binary16::from_f32;
use crate::execute::lane::rounding::Rounder;
use crate::execute::lane::{HighHalf, LaneValue, LowHalf, Mixed, settle};

operations! {
    /// Mixed precision.
    TABLE { denormals: ByMode, rounds: SingleFirst, nans: Own, levels: each_level, source: sources::MIXED }

    "v_fma_mix_f32" (a: Mixed, b: Mixed, c: Mixed; context) -> f32 {
        fused(context.round, a, b, c)
    }
    "v_fma_mixlo_f16" (a: Mixed, b: Mixed, c: Mixed; context) -> LowHalf<half::f16> {
        LowHalf(context.round.converted(fused(context.round, a, b, c), from_f32))
    }
    "v_fma_mixhi_f16" (a: Mixed, b: Mixed, c: Mixed; context) -> HighHalf<half::f16> {
        HighHalf(context.round.converted(fused(context.round, a, b, c), from_f32))
    }
}

#[inline(always)]
fn fused(round: impl Rounder, a: Mixed, b: Mixed, c: Mixed) -> f32 {
    let nan = || a.0.quiet_nan().or_else(|| b.0.quiet_nan()).or_else(|| c.0.quiet_nan());
    settle(round.fused(a.0, b.0, c.0), nan())
}
