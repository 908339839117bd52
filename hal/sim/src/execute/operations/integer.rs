//! 32-bit integer arithmetic.

use super::row::operations;

/// A 24-bit unsigned factor: the low bits of a word.
#[inline(always)]
fn u24(word: u32) -> u32 {
    word & 0xff_ffff
}

/// A 24-bit signed factor: the low bits of a word.
#[inline(always)]
fn i24(word: i32) -> i32 {
    word << 8 >> 8
}

operations! {
    /// 32-bit integer arithmetic.
    TABLE { denormals: Kept, rounds: Exact, nans: Own, levels: each_level }

    "v_add_u32" (a: u32, b: u32) -> u32 { a.wrapping_add(b) }
    "v_sub_u32" (a: u32, b: u32) -> u32 { a.wrapping_sub(b) }
    "v_subrev_u32" (a: u32, b: u32) -> u32 { b.wrapping_sub(a) }
    "v_add_i32" (a: u32, b: u32) -> u32 { a.wrapping_add(b) }
    "v_sub_i32" (a: u32, b: u32) -> u32 { a.wrapping_sub(b) }
    "v_add_co_u32" (a: u32, b: u32) -> (u32, bool) { a.overflowing_add(b) }
    "v_sub_co_u32" (a: u32, b: u32) -> (u32, bool) { a.overflowing_sub(b) }
    "v_subrev_co_u32" (a: u32, b: u32) -> (u32, bool) { b.overflowing_sub(a) }
    "v_addc_co_u32" (a: u32, b: u32, carry: bool) -> (u32, bool) {
        let (sum, first) = a.overflowing_add(b);
        let (sum, second) = sum.overflowing_add(carry.into());
        (sum, first | second)
    }
    "v_subb_co_u32" (a: u32, b: u32, borrow: bool) -> (u32, bool) { subtract(a, b, borrow) }
    "v_subbrev_co_u32" (a: u32, b: u32, borrow: bool) -> (u32, bool) { subtract(b, a, borrow) }
    "v_add3_u32" (a: u32, b: u32, c: u32) -> u32 { a.wrapping_add(b).wrapping_add(c) }
    "v_add_lshl_u32" (a: u32, b: u32, by: u32) -> u32 { a.wrapping_add(b) << (by & 31) }
    "v_lshl_add_u32" (a: u32, by: u32, c: u32) -> u32 { (a << (by & 31)).wrapping_add(c) }
    "v_xad_u32" (a: u32, b: u32, c: u32) -> u32 { (a ^ b).wrapping_add(c) }

    "v_mul_lo_u32" (a: u32, b: u32) -> u32 { a.wrapping_mul(b) }
    "v_mul_hi_u32" (a: u32, b: u32) -> u32 { ((u64::from(a) * u64::from(b)) >> 32) as u32 }
    "v_mul_hi_i32" (a: i32, b: i32) -> i32 { ((i64::from(a) * i64::from(b)) >> 32) as i32 }
    "v_mul_u32_u24" (a: u32, b: u32) -> u32 { u24(a).wrapping_mul(u24(b)) }
    "v_mul_i32_i24" (a: i32, b: i32) -> i32 { i24(a).wrapping_mul(i24(b)) }
    "v_mul_hi_u32_u24" (a: u32, b: u32) -> u32 {
        ((u64::from(u24(a)) * u64::from(u24(b))) >> 32) as u32
    }
    "v_mul_hi_i32_i24" (a: i32, b: i32) -> i32 {
        ((i64::from(i24(a)) * i64::from(i24(b))) >> 32) as i32
    }
    "v_mad_u32_u24" (a: u32, b: u32, c: u32) -> u32 {
        u24(a).wrapping_mul(u24(b)).wrapping_add(c)
    }
    "v_mad_i32_i24" (a: i32, b: i32, c: i32) -> i32 {
        i24(a).wrapping_mul(i24(b)).wrapping_add(c)
    }
    "v_mad_u32" (a: u32, b: u32, c: u32) -> u32 { a.wrapping_mul(b).wrapping_add(c) }
    // The sums saturate (LLVM, `ThreeOp_i32_Pats`).
    "v_add_max_i32" (a: i32, b: i32, c: i32) -> i32 { a.saturating_add(b).max(c) }
    "v_add_min_i32" (a: i32, b: i32, c: i32) -> i32 { a.saturating_add(b).min(c) }
    "v_add_max_u32" (a: u32, b: u32, c: u32) -> u32 { a.saturating_add(b).max(c) }
    "v_add_min_u32" (a: u32, b: u32, c: u32) -> u32 { a.saturating_add(b).min(c) }
    "v_mad_u32_u16" (a: u16, b: u16, c: u32) -> u32 {
        (u32::from(a) * u32::from(b)).wrapping_add(c)
    }
    "v_mad_i32_i16" (a: i16, b: i16, c: i32) -> i32 {
        (i32::from(a) * i32::from(b)).wrapping_add(c)
    }

    "v_min_u32" (a: u32, b: u32) -> u32 { a.min(b) }
    "v_max_u32" (a: u32, b: u32) -> u32 { a.max(b) }
    "v_min_i32" (a: i32, b: i32) -> i32 { a.min(b) }
    "v_max_i32" (a: i32, b: i32) -> i32 { a.max(b) }
    "v_min3_u32" (a: u32, b: u32, c: u32) -> u32 { a.min(b).min(c) }
    "v_max3_u32" (a: u32, b: u32, c: u32) -> u32 { a.max(b).max(c) }
    "v_med3_u32" (a: u32, b: u32, c: u32) -> u32 { a.max(b).min(a.min(b).max(c)) }
    "v_min3_i32" (a: i32, b: i32, c: i32) -> i32 { a.min(b).min(c) }
    "v_max3_i32" (a: i32, b: i32, c: i32) -> i32 { a.max(b).max(c) }
    "v_maxmin_u32" (a: u32, b: u32, c: u32) -> u32 { a.max(b).min(c) }
    "v_minmax_u32" (a: u32, b: u32, c: u32) -> u32 { a.min(b).max(c) }
    "v_maxmin_i32" (a: i32, b: i32, c: i32) -> i32 { a.max(b).min(c) }
    "v_minmax_i32" (a: i32, b: i32, c: i32) -> i32 { a.min(b).max(c) }
    "v_med3_i32" (a: i32, b: i32, c: i32) -> i32 { a.max(b).min(a.min(b).max(c)) }
}

/// Returns `a - b - borrow` and the borrow.
#[inline(always)]
fn subtract(a: u32, b: u32, borrow: bool) -> (u32, bool) {
    let (difference, first) = a.overflowing_sub(b);
    let (difference, second) = difference.overflowing_sub(borrow.into());
    (difference, first | second)
}
