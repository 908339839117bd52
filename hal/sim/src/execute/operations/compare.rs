//! Comparisons. `v_cmpx_*` uses the same row; the instruction additionally writes EXEC.

#![expect(
    clippy::neg_cmp_op_on_partial_ord,
    reason = "the operations with n are defined as negations, true for NaNs"
)]

use super::row::operations;
use super::sources;
use crate::execute::lane::binary16::to_f32;
use half::f16;

/// The comparisons of an integer type.
macro_rules! integer_comparisons {
    ($($table:ident, $suffix:literal, $type:ty, $levels:ident;)*) => {$(
        operations! {
            /// Integer comparisons.
            $table { denormals: Kept, rounds: Exact, nans: Own, levels: $levels }

            { concat!("v_cmp_f_", $suffix) } (_a: $type, _b: $type) -> bool { false }
            { concat!("v_cmp_lt_", $suffix) } (a: $type, b: $type) -> bool { a < b }
            { concat!("v_cmp_eq_", $suffix) } (a: $type, b: $type) -> bool { a == b }
            { concat!("v_cmp_le_", $suffix) } (a: $type, b: $type) -> bool { a <= b }
            { concat!("v_cmp_gt_", $suffix) } (a: $type, b: $type) -> bool { a > b }
            { concat!("v_cmp_ne_", $suffix) } (a: $type, b: $type) -> bool { a != b }
            { concat!("v_cmp_ge_", $suffix) } (a: $type, b: $type) -> bool { a >= b }
            { concat!("v_cmp_t_", $suffix) } (_a: $type, _b: $type) -> bool { true }
        }
    )*};
}

integer_comparisons! {
    I16, "i16", i16, plain_only;
    U16, "u16", u16, plain_only;
    I32, "i32", i32, each_level;
    U32, "u32", u32, each_level;
    I64, "i64", i64, each_level;
    U64, "u64", u64, each_level;
}

/// The comparisons of a floating-point type, made after a conversion that preserves order. The ones
/// with `n` are also true for NaNs.
macro_rules! float_comparisons {
    ($($table:ident, $suffix:literal, $type:ty, $convert:expr, $levels:ident;)*) => {$(
        operations! {
            /// Floating-point comparisons.
            $table { denormals: ByMode, rounds: Exact, nans: Own, levels: $levels, source: sources::DEFINED }

            { concat!("v_cmp_f_", $suffix) } (_a: $type, _b: $type) -> bool { false }
            { concat!("v_cmp_lt_", $suffix) } (a: $type, b: $type) -> bool { $convert(a) < $convert(b) }
            { concat!("v_cmp_eq_", $suffix) } (a: $type, b: $type) -> bool { $convert(a) == $convert(b) }
            { concat!("v_cmp_le_", $suffix) } (a: $type, b: $type) -> bool { $convert(a) <= $convert(b) }
            { concat!("v_cmp_gt_", $suffix) } (a: $type, b: $type) -> bool { $convert(a) > $convert(b) }
            { concat!("v_cmp_lg_", $suffix) } (a: $type, b: $type) -> bool {
                ($convert(a) < $convert(b)) | ($convert(a) > $convert(b))
            }
            { concat!("v_cmp_ge_", $suffix) } (a: $type, b: $type) -> bool { $convert(a) >= $convert(b) }
            { concat!("v_cmp_o_", $suffix) } (a: $type, b: $type) -> bool {
                !(a.is_nan() | b.is_nan())
            }
            { concat!("v_cmp_u_", $suffix) } (a: $type, b: $type) -> bool {
                a.is_nan() | b.is_nan()
            }
            { concat!("v_cmp_nge_", $suffix) } (a: $type, b: $type) -> bool {
                !($convert(a) >= $convert(b))
            }
            { concat!("v_cmp_nlg_", $suffix) } (a: $type, b: $type) -> bool {
                !(($convert(a) < $convert(b)) | ($convert(a) > $convert(b)))
            }
            { concat!("v_cmp_ngt_", $suffix) } (a: $type, b: $type) -> bool { !($convert(a) > $convert(b)) }
            { concat!("v_cmp_nle_", $suffix) } (a: $type, b: $type) -> bool {
                !($convert(a) <= $convert(b))
            }
            { concat!("v_cmp_neq_", $suffix) } (a: $type, b: $type) -> bool { $convert(a) != $convert(b) }
            { concat!("v_cmp_nlt_", $suffix) } (a: $type, b: $type) -> bool { !($convert(a) < $convert(b)) }
            { concat!("v_cmp_tru_", $suffix) } (_a: $type, _b: $type) -> bool { true }
        }
    )*};
}

float_comparisons! {
    F16, "f16", f16, to_f32, plain_only;
    F32, "f32", f32, std::convert::identity, each_level;
    F64, "f64", f64, std::convert::identity, each_level;
}

operations! {
    /// Tests whether a number is in one of the classes whose bits are set: signalling NaN, quiet
    /// NaN, then minus infinity to plus infinity. Denormals are not flushed.
    CLASS { denormals: Kept, rounds: Exact, nans: Own, levels: each_level, source: sources::DEFINED }

    "v_cmp_class_f16" (a: f16, classes: u32) -> bool {
        let bits = u64::from(a.to_bits());
        is_of(bits >> 15 != 0, bits & 0x7fff, 10, classes)
    }
    "v_cmp_class_f32" (a: f32, classes: u32) -> bool {
        let bits = u64::from(a.to_bits());
        is_of(bits >> 31 != 0, bits & 0x7fff_ffff, 23, classes)
    }
    "v_cmp_class_f64" (a: f64, classes: u32) -> bool {
        let bits = a.to_bits();
        is_of(bits >> 63 != 0, bits & (u64::MAX >> 1), 52, classes)
    }
}

/// Returns `true` if the number with this sign, magnitude and mantissa width is in a class whose
/// bit is set.
#[inline(always)]
fn is_of(negative: bool, magnitude: u64, mantissa_bits: u32, classes: u32) -> bool {
    let one = 1u64 << mantissa_bits;
    let infinity = match mantissa_bits {
        10 => 0x1f * one,
        23 => 0xff * one,
        _ => 0x7ff * one,
    };
    let number = |minus: u32, plus: u32| if negative { minus } else { plus };
    let class = if magnitude > infinity {
        u32::from(magnitude & (one >> 1) != 0)
    } else if magnitude == infinity {
        number(2, 9)
    } else if magnitude >= one {
        number(3, 8)
    } else if magnitude != 0 {
        number(4, 7)
    } else {
        number(5, 6)
    };
    classes >> class & 1 != 0
}
