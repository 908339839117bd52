//! Moves, logic, shifts and bit fields of 32-bit words.

use super::row::operations;
use super::scaled::next_random;
use crate::execute::lane::LowHalf;

operations! {
    /// Moves, logic, shifts and bit fields.
    TABLE { denormals: Kept, rounds: Exact, nans: Own, levels: each_level }

    "v_mov_b32" (a: u32) -> u32 { a }
    // Moves between the two register files; the operands determine the direction.
    "v_accvgpr_read_b32" (a: u32) -> u32 { a }
    "v_accvgpr_write_b32" (a: u32) -> u32 { a }
    "v_accvgpr_mov_b32" (a: u32) -> u32 { a }
    "v_cndmask_b32" (a: u32, b: u32, mask: bool) -> u32 { if mask { b } else { a } }

    "v_not_b32" (a: u32) -> u32 { !a }
    "v_and_b32" (a: u32, b: u32) -> u32 { a & b }
    "v_or_b32" (a: u32, b: u32) -> u32 { a | b }
    "v_xor_b32" (a: u32, b: u32) -> u32 { a ^ b }
    "v_xnor_b32" (a: u32, b: u32) -> u32 { !(a ^ b) }
    "v_xor3_b32" (a: u32, b: u32, c: u32) -> u32 { a ^ b ^ c }
    "v_and_or_b32" (a: u32, b: u32, c: u32) -> u32 { a & b | c }
    "v_or3_b32" (a: u32, b: u32, c: u32) -> u32 { a | b | c }
    "v_lshl_or_b32" (a: u32, by: u32, c: u32) -> u32 { a << (by & 31) | c }

    "v_lshlrev_b32" (by: u32, a: u32) -> u32 { a << (by & 31) }
    "v_lshrrev_b32" (by: u32, a: u32) -> u32 { a >> (by & 31) }
    "v_ashrrev_i32" (by: u32, a: i32) -> i32 { a >> (by & 31) }
    "v_alignbit_b32" (high: u32, low: u32, by: u32) -> u32 { align(high, low, by & 31) }
    "v_alignbyte_b32" (high: u32, low: u32, by: u32) -> u32 { align(high, low, (by & 3) * 8) }

    "v_bfe_u32" (a: u32, offset: u32, width: u32) -> u32 {
        a >> (offset & 31) & ones(width)
    }
    "v_bfe_i32" (a: i32, offset: u32, width: u32) -> i32 {
        let above = 32 - (width & 31);
        let field = a >> (offset & 31);
        if above == 32 { 0 } else { field << above >> above }
    }
    "v_bfi_b32" (mask: u32, a: u32, b: u32) -> u32 { mask & a | !mask & b }
    "v_bfm_b32" (width: u32, offset: u32) -> u32 { ones(width) << (offset & 31) }
    "v_bfrev_b32" (a: u32) -> u32 { a.reverse_bits() }
    "v_bcnt_u32_b32" (a: u32, b: u32) -> u32 { a.count_ones().wrapping_add(b) }
    "v_ffbh_u32" (a: u32) -> u32 { if a == 0 { u32::MAX } else { a.leading_zeros() } }
    "v_ffbl_b32" (a: u32) -> u32 { if a == 0 { u32::MAX } else { a.trailing_zeros() } }
    "v_ffbh_i32" (a: i32) -> u32 {
        let differs_from_sign = (a ^ a >> 31) as u32;
        if differs_from_sign == 0 { u32::MAX } else { differs_from_sign.leading_zeros() }
    }
    "v_mbcnt_lo_u32_b32" (a: u32, b: u32; context) -> u32 {
        let below = if context.lane < 32 { (1 << context.lane) - 1 } else { u32::MAX };
        (a & below).count_ones().wrapping_add(b)
    }
    "v_mbcnt_hi_u32_b32" (a: u32, b: u32; context) -> u32 {
        let below = if context.lane < 32 { 0 } else { (1 << (context.lane & 31)) - 1 };
        (a & below).count_ones().wrapping_add(b)
    }
    // Each combination of three bits selects a bit of the table.
    "v_bitop3_b32" (a: u32, b: u32, c: u32, table: u32) -> u32 { chosen(a, b, c, table) }
    "v_bitop3_b16" (a: u16, b: u16, c: u16, table: u32) -> LowHalf<u16> {
        LowHalf(chosen(a.into(), b.into(), c.into(), table) as u16)
    }
    // As above with zero for the third word (LLVM, `GCNVOPDUtils.cpp`).
    "v_bitop2_b32" (a: u32, b: u32, table: u32) -> u32 { chosen(a, b, 0, table) }
    "v_prng_b32" (a: u32) -> u32 { next_random(a) }
    "v_perm_b32" (a: u32, b: u32, select: u32) -> u32 {
        let bytes = u64::from(a) << 32 | u64::from(b);
        permuted(bytes, select)
            | permuted(bytes, select >> 8) << 8
            | permuted(bytes, select >> 16) << 16
            | permuted(bytes, select >> 24) << 24
    }
}

/// For each bit position, the bit of an eight-bit table that the bits of three words select; the
/// bit of `a` is the highest of the index (CDNA 4 ISA, "V_BITOP3_B32").
#[inline(always)]
fn chosen(a: u32, b: u32, c: u32, table: u32) -> u32 {
    let side = |yes: bool, word: u32| if yes { word } else { !word };
    let mut result = 0;
    for number in 0..8 {
        let selected =
            side(number & 4 != 0, a) & side(number & 2 != 0, b) & side(number & 1 != 0, c);
        result |= if table >> number & 1 != 0 { selected } else { 0 };
    }
    result
}

/// Mask of as many ones as the low five bits of `width` specify.
#[inline(always)]
fn ones(width: u32) -> u32 {
    (1 << (width & 31)) - 1
}

#[inline(always)]
fn align(high: u32, low: u32, by: u32) -> u32 {
    ((u64::from(high) << 32 | u64::from(low)) >> by) as u32
}

/// Byte that the low byte of a `v_perm_b32` selector selects: one of the eight bytes, a sign
/// extended over a byte, zeros, or ones.
#[inline(always)]
fn permuted(bytes: u64, select: u32) -> u32 {
    let select = select & 0xff;
    let byte = (bytes >> (8 * (select & 7))) as u32 & 0xff;
    let sign = (bytes >> (16 * (select & 3) + 15)) as u32 & 1;
    match select {
        0..8 => byte,
        8..12 => sign * 0xff,
        12 => 0,
        _ => 0xff,
    }
}
