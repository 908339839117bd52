//! 16-bit integers. Operations new in gfx9 keep the high half of the destination, the older ones
//! clear it.

use super::row::operations;
use crate::execute::lane::LowHalf;

operations! {
    /// 16-bit integers.
    TABLE { denormals: Kept, rounds: Exact, nans: Own, levels: each_level }

    "v_add_u16" (a: u16, b: u16) -> u16 { a.wrapping_add(b) }
    "v_sub_u16" (a: u16, b: u16) -> u16 { a.wrapping_sub(b) }
    "v_subrev_u16" (a: u16, b: u16) -> u16 { b.wrapping_sub(a) }
    "v_add_i16" (a: u16, b: u16) -> LowHalf<u16> { LowHalf(a.wrapping_add(b)) }
    "v_sub_i16" (a: u16, b: u16) -> LowHalf<u16> { LowHalf(a.wrapping_sub(b)) }
    "v_mul_lo_u16" (a: u16, b: u16) -> u16 { a.wrapping_mul(b) }
    "v_mad_u16" (a: u16, b: u16, c: u16) -> LowHalf<u16> {
        LowHalf(a.wrapping_mul(b).wrapping_add(c))
    }
    "v_mad_i16" (a: u16, b: u16, c: u16) -> LowHalf<u16> {
        LowHalf(a.wrapping_mul(b).wrapping_add(c))
    }
    "v_mad_legacy_u16" (a: u16, b: u16, c: u16) -> u16 { a.wrapping_mul(b).wrapping_add(c) }
    "v_mad_legacy_i16" (a: u16, b: u16, c: u16) -> u16 { a.wrapping_mul(b).wrapping_add(c) }

    "v_mov_b16" (a: u16) -> u16 { a }
    "v_and_b16" (a: u16, b: u16) -> u16 { a & b }
    "v_or_b16" (a: u16, b: u16) -> u16 { a | b }
    "v_xor_b16" (a: u16, b: u16) -> u16 { a ^ b }
    "v_not_b16" (a: u16) -> u16 { !a }
    "v_cndmask_b16" (a: u16, b: u16, mask: bool) -> u16 { if mask { b } else { a } }
    "v_cvt_u32_u16" (a: u16) -> u32 { a.into() }
    "v_cvt_i32_i16" (a: i16) -> i32 { a.into() }

    "v_ashr_pk_i8_i32" (a: i32, b: i32, by: u32) -> LowHalf<u16> {
        let byte = |word: i32| (word >> (by & 31)).clamp(-128, 127) as u8;
        LowHalf(u16::from_le_bytes([byte(a), byte(b)]))
    }
    "v_ashr_pk_u8_i32" (a: i32, b: i32, by: u32) -> LowHalf<u16> {
        let byte = |word: i32| (word >> (by & 31)).clamp(0, 255) as u8;
        LowHalf(u16::from_le_bytes([byte(a), byte(b)]))
    }

    // Four bytes to four bits each (gfx1250).
    "v_sat_pk4_i4_i8" (a: u32) -> LowHalf<u16> {
        nibbles(a.to_le_bytes().map(|byte| (byte as i8).clamp(-8, 7) as u8))
    }
    "v_sat_pk4_u4_u8" (a: u32) -> LowHalf<u16> {
        nibbles(a.to_le_bytes().map(|byte| byte.min(15)))
    }

    "v_lshlrev_b16" (by: u16, a: u16) -> u16 { a << (by & 15) }
    "v_lshrrev_b16" (by: u16, a: u16) -> u16 { a >> (by & 15) }
    "v_ashrrev_i16" (by: u16, a: i16) -> i16 { a >> (by & 15) }

    "v_min_u16" (a: u16, b: u16) -> u16 { a.min(b) }
    "v_max_u16" (a: u16, b: u16) -> u16 { a.max(b) }
    "v_min_i16" (a: i16, b: i16) -> i16 { a.min(b) }
    "v_max_i16" (a: i16, b: i16) -> i16 { a.max(b) }
    "v_min3_u16" (a: u16, b: u16, c: u16) -> LowHalf<u16> { LowHalf(a.min(b).min(c)) }
    "v_max3_u16" (a: u16, b: u16, c: u16) -> LowHalf<u16> { LowHalf(a.max(b).max(c)) }
    "v_med3_u16" (a: u16, b: u16, c: u16) -> LowHalf<u16> {
        LowHalf(a.max(b).min(a.min(b).max(c)))
    }
    "v_min3_i16" (a: i16, b: i16, c: i16) -> LowHalf<i16> { LowHalf(a.min(b).min(c)) }
    "v_max3_i16" (a: i16, b: i16, c: i16) -> LowHalf<i16> { LowHalf(a.max(b).max(c)) }
    "v_med3_i16" (a: i16, b: i16, c: i16) -> LowHalf<i16> {
        LowHalf(a.max(b).min(a.min(b).max(c)))
    }
}

#[inline(always)]
fn nibbles(values: [u8; 4]) -> LowHalf<u16> {
    let [a, b, c, d] = values.map(|value| u16::from(value & 15));
    LowHalf(a | b << 4 | c << 8 | d << 12)
}
