//! Sums of absolute differences and other byte-wise operations.

use super::row::operations;

operations! {
    /// Byte-wise operations.
    TABLE { denormals: Kept, rounds: Exact, nans: Own, levels: plain_only }

    "v_lerp_u8" (a: u32, b: u32, round: u32) -> u32 {
        let byte = |i: u32| {
            let half = |word: u32| word >> (8 * i) & 0xff;
            (half(a) + half(b) + (half(round) & 1)) >> 1 << (8 * i)
        };
        byte(0) | byte(1) | byte(2) | byte(3)
    }
    "v_sad_u8" (a: u32, b: u32, sum: u32) -> u32 { sum.wrapping_add(difference(a, b)) }
    "v_sad_u8 clamp" (a: u32, b: u32, sum: u32) -> u32 { sum.saturating_add(difference(a, b)) }
    "v_sad_hi_u8" (a: u32, b: u32, sum: u32) -> u32 {
        sum.wrapping_add(difference(a, b) << 16)
    }
    "v_sad_hi_u8 clamp" (a: u32, b: u32, sum: u32) -> u32 {
        sum.saturating_add(difference(a, b) << 16)
    }
    "v_sad_u16" (a: u32, b: u32, sum: u32) -> u32 { sum.wrapping_add(difference_of_halves(a, b)) }
    "v_sad_u16 clamp" (a: u32, b: u32, sum: u32) -> u32 {
        sum.saturating_add(difference_of_halves(a, b))
    }
    "v_sad_u32" (a: u32, b: u32, sum: u32) -> u32 { sum.wrapping_add(a.abs_diff(b)) }
    "v_sad_u32 clamp" (a: u32, b: u32, sum: u32) -> u32 { sum.saturating_add(a.abs_diff(b)) }
    "v_msad_u8" (a: u32, b: u32, sum: u32) -> u32 { sum.wrapping_add(masked_difference(a, b)) }
    "v_msad_u8 clamp" (a: u32, b: u32, sum: u32) -> u32 {
        sum.saturating_add(masked_difference(a, b))
    }
    "v_qsad_pk_u16_u8" (a: u64, b: u32, sums: u64) -> u64 {
        four_sums(a, b, sums, difference, u16::wrapping_add)
    }
    "v_qsad_pk_u16_u8 clamp" (a: u64, b: u32, sums: u64) -> u64 {
        four_sums(a, b, sums, difference, u16::saturating_add)
    }
    "v_mqsad_pk_u16_u8" (a: u64, b: u32, sums: u64) -> u64 {
        four_sums(a, b, sums, masked_difference, u16::wrapping_add)
    }
    "v_mqsad_pk_u16_u8 clamp" (a: u64, b: u32, sums: u64) -> u64 {
        four_sums(a, b, sums, masked_difference, u16::saturating_add)
    }
    "v_sat_pk_u8_i16" (a: u32) -> u32 {
        let byte = |half: u32| u32::from((half as i16).clamp(0, 255) as u8);
        byte(a) | byte(a >> 16) << 8
    }
}

/// Sum of the absolute differences of the bytes.
fn difference(a: u32, b: u32) -> u32 {
    let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    pairs.map(|(a, b)| u32::from(a.abs_diff(b))).sum()
}

/// Sum of the absolute differences, except for bytes that are zero in `b`.
pub(super) fn masked_difference(a: u32, b: u32) -> u32 {
    let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    pairs.filter(|(_, b)| *b != 0).map(|(a, b)| u32::from(a.abs_diff(b))).sum()
}

fn difference_of_halves(a: u32, b: u32) -> u32 {
    (a & 0xffff).abs_diff(b & 0xffff) + (a >> 16).abs_diff(b >> 16)
}

/// Four sums of differences between `b` and the four words that start at the low bytes of `a`, each
/// added to a half of `sums`.
fn four_sums(
    a: u64,
    b: u32,
    sums: u64,
    difference: fn(u32, u32) -> u32,
    add: fn(u16, u16) -> u16,
) -> u64 {
    (0..4).fold(0, |result, i| {
        let difference = difference((a >> (8 * i)) as u32, b);
        result | u64::from(add(difference as u16, (sums >> (16 * i)) as u16)) << (16 * i)
    })
}
