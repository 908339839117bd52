//! Conversions from and to floating point of eight bits as gfx12 has them, in the formats of
//! [`ocp8`](crate::execute::lane::ocp8) (RDNA 4 ISA, `V_CVT_F32_FP8` and others). Their names end in
//! `" ocp"` here: older generations have the same names for other formats.
//!
//! Which byte is read or written is the instruction's affair. What is too great is clamped as
//! `FP16_OVFL` says. Stochastic rounding adds the upper bits of the second source below the last place
//! and cuts off; that the manual's text wraps around within the mantissa is taken for a simplification.

use super::operations;
use crate::execute::lane::ocp8::{BF8, FP8, bf8, fp8};
use crate::execute::lane::{LowHalf, Pair};
use crate::wave::Mode;

operations! {
    /// 8-bit formats.
    TABLE { denormals: Kept, rounds: Fixed, nans: Own, levels: of_plain }

    "v_cvt_f32_fp8 ocp" (a: u32) -> f32 { fp8(a as u8) }
    "v_cvt_f32_bf8 ocp" (a: u32) -> f32 { bf8(a as u8) }
    "v_cvt_pk_f32_fp8 ocp" (a: u16) -> Pair<f32> { Pair(fp8(a as u8), fp8((a >> 8) as u8)) }
    "v_cvt_pk_f32_bf8 ocp" (a: u16) -> Pair<f32> { Pair(bf8(a as u8), bf8((a >> 8) as u8)) }
    "v_cvt_pk_fp8_f32 ocp" (a: f32, b: f32; context) -> LowHalf<u16> {
        let byte = |value| FP8.of(value, clamps(context.mode));
        LowHalf(u16::from_le_bytes([byte(a), byte(b)]))
    }
    "v_cvt_pk_bf8_f32 ocp" (a: f32, b: f32; context) -> LowHalf<u16> {
        let byte = |value| BF8.of(value, clamps(context.mode));
        LowHalf(u16::from_le_bytes([byte(a), byte(b)]))
    }
    "v_cvt_sr_fp8_f32 ocp" (a: f32, random: u32; context) -> u32 {
        FP8.of_stochastic(a, random, clamps(context.mode)).into()
    }
    "v_cvt_sr_bf8_f32 ocp" (a: f32, random: u32; context) -> u32 {
        BF8.of_stochastic(a, random, clamps(context.mode)).into()
    }
}

/// Whether what is too great becomes the greatest number.
fn clamps(mode: Mode) -> bool {
    mode.0 & Mode::FP16_OVERFLOW != 0
}
