//! Comparisons.

use super::lowering::{Lowering, any};

/// Comparison of signed half words.
macro_rules! signed_halves {
    ($condition:literal) => {
        concat!("%x = shl W %a, #16\n%y = shl W %b, #16\n%r = icmp ", $condition, " W %x, %y")
    };
}

/// Tests whether the class of a number, one of ten, is in a bit set.
const CLASS: &str = "%bits = bitcast F %a to W\n%size = and W %bits, #2147483647\n\
     %minus = icmp slt W %bits, zeroinitializer\n%quiet = and W %bits, #4194304\n\
     %loud = icmp eq W %quiet, zeroinitializer\n%nans = select M %loud, W zeroinitializer, W #1\n\
     %infs = select M %minus, W #2, W #9\n%normal = select M %minus, W #3, W #8\n\
     %denormal = select M %minus, W #4, W #7\n%zeros = select M %minus, W #5, W #6\n\
     %is = icmp ne W %size, zeroinitializer\n%c1 = select M %is, W %denormal, W %zeros\n\
     %large = icmp uge W %size, #8388608\n%c2 = select M %large, W %normal, W %c1\n\
     %inf = icmp eq W %size, #2139095040\n%c3 = select M %inf, W %infs, W %c2\n\
     %nan = icmp ugt W %size, #2139095040\n%class = select M %nan, W %nans, W %c3\n\
     %among = lshr W %b, %class\n%one = and W %among, #1\n%r = icmp ne W %one, zeroinitializer";

pub const TABLE: &[Lowering] = &[
    any("v_cmp_lt_i32", "%r = icmp slt W %a, %b"),
    any("v_cmp_eq_i32", "%r = icmp eq W %a, %b"),
    any("v_cmp_le_i32", "%r = icmp sle W %a, %b"),
    any("v_cmp_gt_i32", "%r = icmp sgt W %a, %b"),
    any("v_cmp_ne_i32", "%r = icmp ne W %a, %b"),
    any("v_cmp_ge_i32", "%r = icmp sge W %a, %b"),
    any("v_cmp_lt_u32", "%r = icmp ult W %a, %b"),
    any("v_cmp_eq_u32", "%r = icmp eq W %a, %b"),
    any("v_cmp_le_u32", "%r = icmp ule W %a, %b"),
    any("v_cmp_gt_u32", "%r = icmp ugt W %a, %b"),
    any("v_cmp_ne_u32", "%r = icmp ne W %a, %b"),
    any("v_cmp_ge_u32", "%r = icmp uge W %a, %b"),
    any("v_cmp_lt_i64", "%r = icmp slt D %a, %b"),
    any("v_cmp_eq_i64", "%r = icmp eq D %a, %b"),
    any("v_cmp_le_i64", "%r = icmp sle D %a, %b"),
    any("v_cmp_gt_i64", "%r = icmp sgt D %a, %b"),
    any("v_cmp_ne_i64", "%r = icmp ne D %a, %b"),
    any("v_cmp_ge_i64", "%r = icmp sge D %a, %b"),
    any("v_cmp_lt_u64", "%r = icmp ult D %a, %b"),
    any("v_cmp_eq_u64", "%r = icmp eq D %a, %b"),
    any("v_cmp_le_u64", "%r = icmp ule D %a, %b"),
    any("v_cmp_gt_u64", "%r = icmp ugt D %a, %b"),
    any("v_cmp_ne_u64", "%r = icmp ne D %a, %b"),
    any("v_cmp_ge_u64", "%r = icmp uge D %a, %b"),
    any("v_cmp_lt_f32", "%r = fcmp olt F %a, %b"),
    any("v_cmp_eq_f32", "%r = fcmp oeq F %a, %b"),
    any("v_cmp_le_f32", "%r = fcmp ole F %a, %b"),
    any("v_cmp_gt_f32", "%r = fcmp ogt F %a, %b"),
    any("v_cmp_lg_f32", "%r = fcmp one F %a, %b"),
    any("v_cmp_ge_f32", "%r = fcmp oge F %a, %b"),
    any("v_cmp_o_f32", "%r = fcmp ord F %a, %b"),
    any("v_cmp_u_f32", "%r = fcmp uno F %a, %b"),
    any("v_cmp_nge_f32", "%r = fcmp ult F %a, %b"),
    any("v_cmp_nlg_f32", "%r = fcmp ueq F %a, %b"),
    any("v_cmp_ngt_f32", "%r = fcmp ule F %a, %b"),
    any("v_cmp_nle_f32", "%r = fcmp ugt F %a, %b"),
    any("v_cmp_neq_f32", "%r = fcmp une F %a, %b"),
    any("v_cmp_nlt_f32", "%r = fcmp uge F %a, %b"),
    any("v_cmp_lt_f64", "%r = fcmp olt E %a, %b"),
    any("v_cmp_eq_f64", "%r = fcmp oeq E %a, %b"),
    any("v_cmp_le_f64", "%r = fcmp ole E %a, %b"),
    any("v_cmp_gt_f64", "%r = fcmp ogt E %a, %b"),
    any("v_cmp_lg_f64", "%r = fcmp one E %a, %b"),
    any("v_cmp_ge_f64", "%r = fcmp oge E %a, %b"),
    any("v_cmp_nge_f64", "%r = fcmp ult E %a, %b"),
    any("v_cmp_nlg_f64", "%r = fcmp ueq E %a, %b"),
    any("v_cmp_ngt_f64", "%r = fcmp ule E %a, %b"),
    any("v_cmp_nle_f64", "%r = fcmp ugt E %a, %b"),
    any("v_cmp_neq_f64", "%r = fcmp une E %a, %b"),
    any("v_cmp_nlt_f64", "%r = fcmp uge E %a, %b"),
    any("v_cmp_lt_i16", signed_halves!("slt")),
    any("v_cmp_eq_i16", "%r = icmp eq W %a, %b"),
    any("v_cmp_le_i16", signed_halves!("sle")),
    any("v_cmp_gt_i16", signed_halves!("sgt")),
    any("v_cmp_ne_i16", "%r = icmp ne W %a, %b"),
    any("v_cmp_ge_i16", signed_halves!("sge")),
    any("v_cmp_lt_u16", "%r = icmp ult W %a, %b"),
    any("v_cmp_eq_u16", "%r = icmp eq W %a, %b"),
    any("v_cmp_le_u16", "%r = icmp ule W %a, %b"),
    any("v_cmp_gt_u16", "%r = icmp ugt W %a, %b"),
    any("v_cmp_ne_u16", "%r = icmp ne W %a, %b"),
    any("v_cmp_ge_u16", "%r = icmp uge W %a, %b"),
    any("v_cmp_lt_f16", "%r = fcmp olt F %a, %b"),
    any("v_cmp_eq_f16", "%r = fcmp oeq F %a, %b"),
    any("v_cmp_le_f16", "%r = fcmp ole F %a, %b"),
    any("v_cmp_gt_f16", "%r = fcmp ogt F %a, %b"),
    any("v_cmp_lg_f16", "%r = fcmp one F %a, %b"),
    any("v_cmp_ge_f16", "%r = fcmp oge F %a, %b"),
    any("v_cmp_o_f16", "%r = fcmp ord F %a, %b"),
    any("v_cmp_u_f16", "%r = fcmp uno F %a, %b"),
    any("v_cmp_nge_f16", "%r = fcmp ult F %a, %b"),
    any("v_cmp_nlg_f16", "%r = fcmp ueq F %a, %b"),
    any("v_cmp_ngt_f16", "%r = fcmp ule F %a, %b"),
    any("v_cmp_nle_f16", "%r = fcmp ugt F %a, %b"),
    any("v_cmp_neq_f16", "%r = fcmp une F %a, %b"),
    any("v_cmp_nlt_f16", "%r = fcmp uge F %a, %b"),
    any("v_cmp_class_f32", CLASS),
];
