//! 64-bit integers.

use super::row::operations;

operations! {
    /// 64-bit integers.
    TABLE { denormals: Kept, rounds: Exact, nans: Own, levels: each_level }

    "v_mov_b64" (a: u64) -> u64 { a }
    "v_lshl_add_u64" (a: u64, by: u32, c: u64) -> u64 { (a << (by & 7)).wrapping_add(c) }
    "v_add_nc_u64" (a: u64, b: u64) -> u64 { a.wrapping_add(b) }
    "v_sub_nc_u64" (a: u64, b: u64) -> u64 { a.wrapping_sub(b) }
    "v_mul_u64" (a: u64, b: u64) -> u64 { a.wrapping_mul(b) }
    "v_min_u64" (a: u64, b: u64) -> u64 { a.min(b) }
    "v_max_u64" (a: u64, b: u64) -> u64 { a.max(b) }
    "v_min_i64" (a: i64, b: i64) -> i64 { a.min(b) }
    "v_max_i64" (a: i64, b: i64) -> i64 { a.max(b) }
    "v_mad_nc_u64_u32" (a: u32, b: u32, c: u64) -> u64 {
        (u64::from(a) * u64::from(b)).wrapping_add(c)
    }
    "v_mad_nc_i64_i32" (a: i32, b: i32, c: i64) -> i64 {
        (i64::from(a) * i64::from(b)).wrapping_add(c)
    }
    "v_lshlrev_b64" (by: u32, a: u64) -> u64 { a << (by & 63) }
    "v_lshrrev_b64" (by: u32, a: u64) -> u64 { a >> (by & 63) }
    "v_ashrrev_i64" (by: u32, a: i64) -> i64 { a >> (by & 63) }
    "v_mad_u64_u32" (a: u32, b: u32, c: u64) -> (u64, bool) {
        (u64::from(a) * u64::from(b)).overflowing_add(c)
    }
    "v_mad_i64_i32" (a: i32, b: i32, c: i64) -> (i64, bool) {
        signed_sum(a, b, c)
    }
}

/// A product plus a summand, and bit 64 of their 65-bit sum (RDNA 3 ISA, `V_MAD_I64_I32`): its
/// sign.
#[inline(always)]
pub(super) fn signed_sum(a: i32, b: i32, c: i64) -> (i64, bool) {
    let (sum, overflows) = (i64::from(a) * i64::from(b)).overflowing_add(c);
    (sum, (sum < 0) != overflows)
}
