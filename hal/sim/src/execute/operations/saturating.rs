//! Integer operations whose `clamp` modifier saturates the result to the range of its type.

use super::row::operations;
use super::wide::signed_sum;
use crate::execute::lane::{LowHalf, Pair};

operations! {
    /// Saturating forms.
    TABLE { denormals: Kept, rounds: Exact, nans: Own, levels: plain_only }

    "v_add_u32 clamp" (a: u32, b: u32) -> u32 { a.saturating_add(b) }
    "v_sub_u32 clamp" (a: u32, b: u32) -> u32 { a.saturating_sub(b) }
    "v_subrev_u32 clamp" (a: u32, b: u32) -> u32 { b.saturating_sub(a) }
    "v_add_i32 clamp" (a: i32, b: i32) -> i32 { a.saturating_add(b) }
    "v_sub_i32 clamp" (a: i32, b: i32) -> i32 { a.saturating_sub(b) }
    "v_add_co_u32 clamp" (a: u32, b: u32) -> (u32, bool) {
        (a.saturating_add(b), a.checked_add(b).is_none())
    }
    "v_sub_co_u32 clamp" (a: u32, b: u32) -> (u32, bool) { (a.saturating_sub(b), a < b) }
    "v_subrev_co_u32 clamp" (a: u32, b: u32) -> (u32, bool) { (b.saturating_sub(a), b < a) }
    "v_addc_co_u32 clamp" (a: u32, b: u32, carry: bool) -> (u32, bool) {
        let sum = u64::from(a) + u64::from(b) + u64::from(carry);
        (u32::try_from(sum).unwrap_or(u32::MAX), sum > u64::from(u32::MAX))
    }
    "v_subb_co_u32 clamp" (a: u32, b: u32, borrow: bool) -> (u32, bool) {
        let difference = i64::from(a) - i64::from(b) - i64::from(borrow);
        (difference.max(0) as u32, difference < 0)
    }
    "v_subbrev_co_u32 clamp" (a: u32, b: u32, borrow: bool) -> (u32, bool) {
        let difference = i64::from(b) - i64::from(a) - i64::from(borrow);
        (difference.max(0) as u32, difference < 0)
    }

    "v_add_u16 clamp" (a: u16, b: u16) -> u16 { a.saturating_add(b) }
    "v_sub_u16 clamp" (a: u16, b: u16) -> u16 { a.saturating_sub(b) }
    "v_subrev_u16 clamp" (a: u16, b: u16) -> u16 { b.saturating_sub(a) }
    "v_add_i16 clamp" (a: i16, b: i16) -> LowHalf<i16> { LowHalf(a.saturating_add(b)) }
    "v_sub_i16 clamp" (a: i16, b: i16) -> LowHalf<i16> { LowHalf(a.saturating_sub(b)) }
    "v_mad_u16 clamp" (a: u16, b: u16, c: u16) -> LowHalf<u16> { LowHalf(mad_u16(a, b, c)) }
    "v_mad_i16 clamp" (a: i16, b: i16, c: i16) -> LowHalf<i16> { LowHalf(mad_i16(a, b, c)) }
    "v_mad_legacy_u16 clamp" (a: u16, b: u16, c: u16) -> u16 { mad_u16(a, b, c) }
    "v_mad_legacy_i16 clamp" (a: i16, b: i16, c: i16) -> i16 { mad_i16(a, b, c) }

    "v_mad_u32_u24 clamp" (a: u32, b: u32, c: u32) -> u32 {
        let factor = |word: u32| u64::from(word & 0xff_ffff);
        unsigned(factor(a) * factor(b) + u64::from(c))
    }
    "v_mad_i32_i24 clamp" (a: i32, b: i32, c: i32) -> i32 {
        let factor = |word: i32| i64::from(word << 8 >> 8);
        signed(factor(a) * factor(b) + i64::from(c))
    }
    "v_mad_u32_u16 clamp" (a: u16, b: u16, c: u32) -> u32 {
        unsigned(u64::from(a) * u64::from(b) + u64::from(c))
    }
    "v_mad_i32_i16 clamp" (a: i16, b: i16, c: i32) -> i32 {
        signed(i64::from(a) * i64::from(b) + i64::from(c))
    }
    "v_mad_u64_u32 clamp" (a: u32, b: u32, c: u64) -> (u64, bool) {
        let (sum, carry) = (u64::from(a) * u64::from(b)).overflowing_add(c);
        (if carry { u64::MAX } else { sum }, carry)
    }
    "v_mad_i64_i32 clamp" (a: i32, b: i32, c: i64) -> (i64, bool) {
        let product = i64::from(a) * i64::from(b);
        (product.saturating_add(c), signed_sum(a, b, c).1)
    }

    "v_pk_add_u16 clamp" (a: Pair<u16>, b: Pair<u16>) -> Pair<u16> {
        Pair(a.0.saturating_add(b.0), a.1.saturating_add(b.1))
    }
    "v_pk_sub_u16 clamp" (a: Pair<u16>, b: Pair<u16>) -> Pair<u16> {
        Pair(a.0.saturating_sub(b.0), a.1.saturating_sub(b.1))
    }
    "v_pk_add_i16 clamp" (a: Pair<i16>, b: Pair<i16>) -> Pair<i16> {
        Pair(a.0.saturating_add(b.0), a.1.saturating_add(b.1))
    }
    "v_pk_sub_i16 clamp" (a: Pair<i16>, b: Pair<i16>) -> Pair<i16> {
        Pair(a.0.saturating_sub(b.0), a.1.saturating_sub(b.1))
    }
    "v_pk_mad_u16 clamp" (a: Pair<u16>, b: Pair<u16>, c: Pair<u16>) -> Pair<u16> {
        Pair(mad_u16(a.0, b.0, c.0), mad_u16(a.1, b.1, c.1))
    }
    "v_pk_mad_i16 clamp" (a: Pair<i16>, b: Pair<i16>, c: Pair<i16>) -> Pair<i16> {
        Pair(mad_i16(a.0, b.0, c.0), mad_i16(a.1, b.1, c.1))
    }
}

fn unsigned(exact: u64) -> u32 {
    u32::try_from(exact).unwrap_or(u32::MAX)
}

fn signed(exact: i64) -> i32 {
    exact.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

fn mad_u16(a: u16, b: u16, c: u16) -> u16 {
    let exact = u64::from(a) * u64::from(b) + u64::from(c);
    u16::try_from(exact).unwrap_or(u16::MAX)
}

fn mad_i16(a: i16, b: i16, c: i16) -> i16 {
    let exact = i32::from(a) * i32::from(b) + i32::from(c);
    exact.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}
