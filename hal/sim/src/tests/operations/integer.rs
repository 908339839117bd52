//! Integer operations, checked against unbounded arithmetic and bit-by-bit definitions.

use super::{DEFAULT_MODE, Outcome, Sources, differs, operation, samples};

type Reference = fn(&Wide) -> i128;

/// The sources as signed and unsigned numbers of 16, 24, 32 and 64 bits.
struct Wide([u64; 4]);

impl Wide {
    fn u(&self, source: usize, bits: u32) -> i128 {
        i128::from(self.0[source]) & ((1 << bits) - 1)
    }

    fn s(&self, source: usize, bits: u32) -> i128 {
        let value = self.u(source, bits);
        if value >> (bits - 1) != 0 { value - (1 << bits) } else { value }
    }

    fn sum_u(&self, bits: u32) -> i128 {
        self.u(0, bits) + self.u(1, bits)
    }
}

fn clamp_u(value: i128, bits: u32) -> i128 {
    value.clamp(0, (1 << bits) - 1)
}

fn clamp_s(value: i128, bits: u32) -> i128 {
    value.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
}

fn median(mut values: [i128; 3]) -> i128 {
    values.sort_unstable();
    values[1]
}

fn bits(from: impl IntoIterator<Item = bool>) -> i128 {
    from.into_iter().enumerate().map(|(at, bit)| i128::from(bit) << at).sum()
}

fn is_set(value: i128, bit: u32) -> bool {
    value >> bit & 1 != 0
}

/// Multiplies the elements of two words pairwise and returns the sum.
fn dot(w: &Wide, size: u32, signed: bool) -> i128 {
    (0..32 / size)
        .map(|at| {
            let part = |source: usize| {
                let shifted = Wide([w.0[source] >> (at * size), 0, 0, 0]);
                if signed { shifted.s(0, size) } else { shifted.u(0, size) }
            };
            part(0) * part(1)
        })
        .sum()
}

fn sad(a: i128, b: i128, size: u32, masked: bool) -> i128 {
    (0..32 / size)
        .map(|at| {
            let part = |value: i128| value >> (at * size) & ((1 << size) - 1);
            if masked && part(b) == 0 { 0 } else { (part(a) - part(b)).abs() }
        })
        .sum()
}

fn quad_sad(w: &Wide, masked: bool, saturate: bool) -> i128 {
    (0..4)
        .map(|at| {
            let difference = sad(w.u(0, 64) >> (8 * at) & 0xffff_ffff, w.u(1, 32), 8, masked);
            let sum = difference + (w.u(2, 64) >> (16 * at) & 0xffff);
            (if saturate { sum.min(0xffff) } else { sum & 0xffff }) << (16 * at)
        })
        .sum()
}

fn permuted(w: &Wide) -> i128 {
    let all = w.u(0, 32) << 32 | w.u(1, 32);
    (0..4)
        .map(|at| {
            let select = (w.u(2, 32) >> (8 * at)) as u32 & 0xff;
            let byte = match select {
                0..=7 => all >> (8 * select) & 0xff,
                8..=11 => i128::from(is_set(all, 16 * (select - 8) + 15)) * 0xff,
                12 => 0,
                _ => 0xff,
            };
            byte << (8 * at)
        })
        .sum()
}

fn both(w: &Wide, element: impl Fn(&Wide) -> i128) -> i128 {
    (0..2)
        .map(|half| {
            let part = Wide(w.0.map(|word| word >> (16 * half) & 0xffff));
            (element(&part) & 0xffff) << (16 * half)
        })
        .sum()
}

/// Name, bits of the result, and expected result.
const TABLE: &[(&str, u32, Reference)] = &[
    ("v_mov_b32", 32, |w| w.u(0, 32)),
    ("v_accvgpr_read_b32", 32, |w| w.u(0, 32)),
    ("v_accvgpr_write_b32", 32, |w| w.u(0, 32)),
    ("v_accvgpr_mov_b32", 32, |w| w.u(0, 32)),
    ("v_add_u32", 32, |w| w.sum_u(32)),
    ("v_sub_u32", 32, |w| w.u(0, 32) - w.u(1, 32)),
    ("v_subrev_u32", 32, |w| w.u(1, 32) - w.u(0, 32)),
    ("v_add_i32", 32, |w| w.s(0, 32) + w.s(1, 32)),
    ("v_sub_i32", 32, |w| w.s(0, 32) - w.s(1, 32)),
    ("v_add3_u32", 32, |w| w.sum_u(32) + w.u(2, 32)),
    ("v_add_lshl_u32", 32, |w| w.sum_u(32) << (w.u(2, 5))),
    ("v_lshl_add_u32", 32, |w| (w.u(0, 32) << w.u(1, 5)) + w.u(2, 32)),
    ("v_xad_u32", 32, |w| (w.u(0, 32) ^ w.u(1, 32)) + w.u(2, 32)),
    ("v_mul_lo_u32", 32, |w| w.u(0, 32) * w.u(1, 32)),
    ("v_mul_hi_u32", 32, |w| (w.u(0, 32) * w.u(1, 32)) >> 32),
    ("v_mul_hi_i32", 32, |w| (w.s(0, 32) * w.s(1, 32)) >> 32),
    ("v_mul_u32_u24", 32, |w| w.u(0, 24) * w.u(1, 24)),
    ("v_mul_i32_i24", 32, |w| w.s(0, 24) * w.s(1, 24)),
    ("v_mul_hi_u32_u24", 32, |w| (w.u(0, 24) * w.u(1, 24)) >> 32),
    ("v_mul_hi_i32_i24", 32, |w| (w.s(0, 24) * w.s(1, 24)) >> 32),
    ("v_mad_u32_u24", 32, |w| w.u(0, 24) * w.u(1, 24) + w.u(2, 32)),
    ("v_mad_i32_i24", 32, |w| w.s(0, 24) * w.s(1, 24) + w.s(2, 32)),
    ("v_mad_u32_u16", 32, |w| w.u(0, 16) * w.u(1, 16) + w.u(2, 32)),
    ("v_mad_i32_i16", 32, |w| w.s(0, 16) * w.s(1, 16) + w.s(2, 32)),
    ("v_min_u32", 32, |w| w.u(0, 32).min(w.u(1, 32))),
    ("v_max_u32", 32, |w| w.u(0, 32).max(w.u(1, 32))),
    ("v_min_i32", 32, |w| w.s(0, 32).min(w.s(1, 32))),
    ("v_max_i32", 32, |w| w.s(0, 32).max(w.s(1, 32))),
    ("v_min3_u32", 32, |w| w.u(0, 32).min(w.u(1, 32)).min(w.u(2, 32))),
    ("v_max3_u32", 32, |w| w.u(0, 32).max(w.u(1, 32)).max(w.u(2, 32))),
    ("v_med3_u32", 32, |w| median([w.u(0, 32), w.u(1, 32), w.u(2, 32)])),
    ("v_min3_i32", 32, |w| w.s(0, 32).min(w.s(1, 32)).min(w.s(2, 32))),
    ("v_max3_i32", 32, |w| w.s(0, 32).max(w.s(1, 32)).max(w.s(2, 32))),
    ("v_maxmin_u32", 32, |w| w.u(0, 32).max(w.u(1, 32)).min(w.u(2, 32))),
    ("v_minmax_u32", 32, |w| w.u(0, 32).min(w.u(1, 32)).max(w.u(2, 32))),
    ("v_maxmin_i32", 32, |w| w.s(0, 32).max(w.s(1, 32)).min(w.s(2, 32))),
    ("v_minmax_i32", 32, |w| w.s(0, 32).min(w.s(1, 32)).max(w.s(2, 32))),
    ("v_med3_i32", 32, |w| median([w.s(0, 32), w.s(1, 32), w.s(2, 32)])),
    ("v_not_b32", 32, |w| 0xffff_ffff - w.u(0, 32)),
    ("v_and_b32", 32, |w| bits((0..32).map(|i| is_set(w.u(0, 32), i) && is_set(w.u(1, 32), i)))),
    ("v_or_b32", 32, |w| bits((0..32).map(|i| is_set(w.u(0, 32), i) || is_set(w.u(1, 32), i)))),
    ("v_xor_b32", 32, |w| bits((0..32).map(|i| is_set(w.u(0, 32), i) != is_set(w.u(1, 32), i)))),
    ("v_xnor_b32", 32, |w| bits((0..32).map(|i| is_set(w.u(0, 32), i) == is_set(w.u(1, 32), i)))),
    ("v_xor3_b32", 32, |w| w.u(0, 32) ^ w.u(1, 32) ^ w.u(2, 32)),
    ("v_and_or_b32", 32, |w| w.u(0, 32) & w.u(1, 32) | w.u(2, 32)),
    ("v_or3_b32", 32, |w| w.u(0, 32) | w.u(1, 32) | w.u(2, 32)),
    ("v_lshl_or_b32", 32, |w| w.u(0, 32) << w.u(1, 5) | w.u(2, 32)),
    ("v_cndmask_b32", 32, |w| if w.u(2, 1) != 0 { w.u(1, 32) } else { w.u(0, 32) }),
    ("v_lshlrev_b32", 32, |w| w.u(1, 32) << w.u(0, 5)),
    ("v_lshrrev_b32", 32, |w| w.u(1, 32) >> w.u(0, 5)),
    ("v_ashrrev_i32", 32, |w| w.s(1, 32) >> w.u(0, 5)),
    ("v_lshlrev_b64", 64, |w| w.u(1, 64) << w.u(0, 6)),
    ("v_mov_b64", 64, |w| w.u(0, 64)),
    ("v_lshl_add_u64", 64, |w| (w.u(0, 64) << w.u(1, 3)) + w.u(2, 64)),
    ("v_lshrrev_b64", 64, |w| w.u(1, 64) >> w.u(0, 6)),
    ("v_ashrrev_i64", 64, |w| w.s(1, 64) >> w.u(0, 6)),
    ("v_alignbit_b32", 32, |w| (w.u(0, 32) << 32 | w.u(1, 32)) >> w.u(2, 5)),
    ("v_alignbyte_b32", 32, |w| (w.u(0, 32) << 32 | w.u(1, 32)) >> (8 * w.u(2, 2))),
    ("v_bfe_u32", 32, |w| (w.u(0, 32) >> w.u(1, 5)) % (1 << w.u(2, 5))),
    ("v_bfe_i32", 32, |w| match w.u(2, 5) as u32 {
        0 => 0,
        width => Wide([(w.s(0, 32) >> w.u(1, 5)) as u64, 0, 0, 0]).s(0, width),
    }),
    ("v_bfi_b32", 32, |w| {
        bits((0..32).map(|i| is_set(w.u(if is_set(w.u(0, 32), i) { 1 } else { 2 }, 32), i)))
    }),
    ("v_bfm_b32", 32, |w| ((1 << w.u(0, 5)) - 1) << w.u(1, 5)),
    ("v_bfrev_b32", 32, |w| bits((0..32).map(|i| is_set(w.u(0, 32), 31 - i)))),
    ("v_bcnt_u32_b32", 32, |w| {
        (0..32).filter(|i| is_set(w.u(0, 32), *i)).count() as i128 + w.u(1, 32)
    }),
    ("v_ffbh_u32", 32, |w| (0..32).find(|i| is_set(w.u(0, 32), 31 - i)).map_or(-1, i128::from)),
    ("v_ffbl_b32", 32, |w| (0..32).find(|i| is_set(w.u(0, 32), *i)).map_or(-1, i128::from)),
    ("v_ffbh_i32", 32, |w| {
        let sign = is_set(w.u(0, 32), 31);
        (0..32).find(|i| is_set(w.u(0, 32), 31 - i) != sign).map_or(-1, i128::from)
    }),
    ("v_perm_b32", 32, permuted),
    ("v_add_u16", 16, |w| w.sum_u(16)),
    ("v_sub_u16", 16, |w| w.u(0, 16) - w.u(1, 16)),
    ("v_subrev_u16", 16, |w| w.u(1, 16) - w.u(0, 16)),
    ("v_add_i16", 16, |w| w.s(0, 16) + w.s(1, 16)),
    ("v_sub_i16", 16, |w| w.s(0, 16) - w.s(1, 16)),
    ("v_mul_lo_u16", 16, |w| w.u(0, 16) * w.u(1, 16)),
    ("v_mad_u16", 16, |w| w.u(0, 16) * w.u(1, 16) + w.u(2, 16)),
    ("v_mad_i16", 16, |w| w.s(0, 16) * w.s(1, 16) + w.s(2, 16)),
    ("v_mad_legacy_u16", 16, |w| w.u(0, 16) * w.u(1, 16) + w.u(2, 16)),
    ("v_mad_legacy_i16", 16, |w| w.s(0, 16) * w.s(1, 16) + w.s(2, 16)),
    ("v_mov_b16", 16, |w| w.u(0, 16)),
    ("v_and_b16", 16, |w| w.u(0, 16) & w.u(1, 16)),
    ("v_or_b16", 16, |w| w.u(0, 16) | w.u(1, 16)),
    ("v_xor_b16", 16, |w| w.u(0, 16) ^ w.u(1, 16)),
    ("v_not_b16", 16, |w| !w.u(0, 16)),
    ("v_cndmask_b16", 16, |w| if w.u(2, 1) != 0 { w.u(1, 16) } else { w.u(0, 16) }),
    ("v_cvt_u32_u16", 32, |w| w.u(0, 16)),
    ("v_cvt_i32_i16", 32, |w| w.s(0, 16)),
    ("v_lshlrev_b16", 16, |w| w.u(1, 16) << w.u(0, 4)),
    ("v_lshrrev_b16", 16, |w| w.u(1, 16) >> w.u(0, 4)),
    ("v_ashrrev_i16", 16, |w| w.s(1, 16) >> w.u(0, 4)),
    ("v_min_u16", 16, |w| w.u(0, 16).min(w.u(1, 16))),
    ("v_max_u16", 16, |w| w.u(0, 16).max(w.u(1, 16))),
    ("v_min_i16", 16, |w| w.s(0, 16).min(w.s(1, 16))),
    ("v_max_i16", 16, |w| w.s(0, 16).max(w.s(1, 16))),
    ("v_min3_u16", 16, |w| w.u(0, 16).min(w.u(1, 16)).min(w.u(2, 16))),
    ("v_max3_u16", 16, |w| w.u(0, 16).max(w.u(1, 16)).max(w.u(2, 16))),
    ("v_med3_u16", 16, |w| median([w.u(0, 16), w.u(1, 16), w.u(2, 16)])),
    ("v_min3_i16", 16, |w| w.s(0, 16).min(w.s(1, 16)).min(w.s(2, 16))),
    ("v_max3_i16", 16, |w| w.s(0, 16).max(w.s(1, 16)).max(w.s(2, 16))),
    ("v_med3_i16", 16, |w| median([w.s(0, 16), w.s(1, 16), w.s(2, 16)])),
    ("v_add_u32 clamp", 32, |w| clamp_u(w.sum_u(32), 32)),
    ("v_sub_u32 clamp", 32, |w| clamp_u(w.u(0, 32) - w.u(1, 32), 32)),
    ("v_subrev_u32 clamp", 32, |w| clamp_u(w.u(1, 32) - w.u(0, 32), 32)),
    ("v_add_i32 clamp", 32, |w| clamp_s(w.s(0, 32) + w.s(1, 32), 32)),
    ("v_sub_i32 clamp", 32, |w| clamp_s(w.s(0, 32) - w.s(1, 32), 32)),
    ("v_add_u16 clamp", 16, |w| clamp_u(w.sum_u(16), 16)),
    ("v_sub_u16 clamp", 16, |w| clamp_u(w.u(0, 16) - w.u(1, 16), 16)),
    ("v_subrev_u16 clamp", 16, |w| clamp_u(w.u(1, 16) - w.u(0, 16), 16)),
    ("v_add_i16 clamp", 16, |w| clamp_s(w.s(0, 16) + w.s(1, 16), 16)),
    ("v_sub_i16 clamp", 16, |w| clamp_s(w.s(0, 16) - w.s(1, 16), 16)),
    ("v_mad_u16 clamp", 16, |w| clamp_u(w.u(0, 16) * w.u(1, 16) + w.u(2, 16), 16)),
    ("v_mad_i16 clamp", 16, |w| clamp_s(w.s(0, 16) * w.s(1, 16) + w.s(2, 16), 16)),
    ("v_mad_u32_u24 clamp", 32, |w| clamp_u(w.u(0, 24) * w.u(1, 24) + w.u(2, 32), 32)),
    ("v_mad_i32_i24 clamp", 32, |w| clamp_s(w.s(0, 24) * w.s(1, 24) + w.s(2, 32), 32)),
    ("v_mad_u32_u16 clamp", 32, |w| clamp_u(w.u(0, 16) * w.u(1, 16) + w.u(2, 32), 32)),
    ("v_mad_i32_i16 clamp", 32, |w| clamp_s(w.s(0, 16) * w.s(1, 16) + w.s(2, 32), 32)),
    ("v_pk_add_u16", 32, |w| both(w, |h| h.sum_u(16))),
    ("v_pk_sub_u16", 32, |w| both(w, |h| h.u(0, 16) - h.u(1, 16))),
    ("v_pk_add_i16", 32, |w| both(w, |h| h.s(0, 16) + h.s(1, 16))),
    ("v_pk_sub_i16", 32, |w| both(w, |h| h.s(0, 16) - h.s(1, 16))),
    ("v_pk_mul_lo_u16", 32, |w| both(w, |h| h.u(0, 16) * h.u(1, 16))),
    ("v_pk_mad_u16", 32, |w| both(w, |h| h.u(0, 16) * h.u(1, 16) + h.u(2, 16))),
    ("v_pk_mad_i16", 32, |w| both(w, |h| h.s(0, 16) * h.s(1, 16) + h.s(2, 16))),
    ("v_pk_lshlrev_b16", 32, |w| both(w, |h| h.u(1, 16) << h.u(0, 4))),
    ("v_pk_lshrrev_b16", 32, |w| both(w, |h| h.u(1, 16) >> h.u(0, 4))),
    ("v_pk_ashrrev_i16", 32, |w| both(w, |h| h.s(1, 16) >> h.u(0, 4))),
    ("v_pk_min_u16", 32, |w| both(w, |h| h.u(0, 16).min(h.u(1, 16)))),
    ("v_pk_max_u16", 32, |w| both(w, |h| h.u(0, 16).max(h.u(1, 16)))),
    ("v_pk_min_i16", 32, |w| both(w, |h| h.s(0, 16).min(h.s(1, 16)))),
    ("v_pk_max_i16", 32, |w| both(w, |h| h.s(0, 16).max(h.s(1, 16)))),
    ("v_pk_add_u16 clamp", 32, |w| both(w, |h| clamp_u(h.sum_u(16), 16))),
    ("v_pk_sub_u16 clamp", 32, |w| both(w, |h| clamp_u(h.u(0, 16) - h.u(1, 16), 16))),
    ("v_pk_add_i16 clamp", 32, |w| both(w, |h| clamp_s(h.s(0, 16) + h.s(1, 16), 16))),
    ("v_pk_sub_i16 clamp", 32, |w| both(w, |h| clamp_s(h.s(0, 16) - h.s(1, 16), 16))),
    ("v_pk_mad_u16 clamp", 32, |w| both(w, |h| clamp_u(h.u(0, 16) * h.u(1, 16) + h.u(2, 16), 16))),
    ("v_pk_mad_i16 clamp", 32, |w| both(w, |h| clamp_s(h.s(0, 16) * h.s(1, 16) + h.s(2, 16), 16))),
    ("v_pk_mov_b32", 64, |w| w.u(0, 32) | w.u(1, 32) << 32),
    ("v_dot2_i32_i16", 32, |w| dot(w, 16, true) + w.s(2, 32)),
    ("v_dot2c_i32_i16", 32, |w| dot(w, 16, true) + w.s(2, 32)),
    ("v_dot2_u32_u16", 32, |w| dot(w, 16, false) + w.u(2, 32)),
    ("v_dot4_i32_i8", 32, |w| dot(w, 8, true) + w.s(2, 32)),
    ("v_dot4c_i32_i8", 32, |w| dot(w, 8, true) + w.s(2, 32)),
    ("v_dot4_u32_u8", 32, |w| dot(w, 8, false) + w.u(2, 32)),
    ("v_dot8_i32_i4", 32, |w| dot(w, 4, true) + w.s(2, 32)),
    ("v_dot8c_i32_i4", 32, |w| dot(w, 4, true) + w.s(2, 32)),
    ("v_dot8_u32_u4", 32, |w| dot(w, 4, false) + w.u(2, 32)),
    ("v_dot2_i32_i16 clamp", 32, |w| clamp_s(dot(w, 16, true) + w.s(2, 32), 32)),
    ("v_dot2_u32_u16 clamp", 32, |w| clamp_u(dot(w, 16, false) + w.u(2, 32), 32)),
    ("v_dot4_i32_i8 clamp", 32, |w| clamp_s(dot(w, 8, true) + w.s(2, 32), 32)),
    ("v_dot4_u32_u8 clamp", 32, |w| clamp_u(dot(w, 8, false) + w.u(2, 32), 32)),
    ("v_dot8_i32_i4 clamp", 32, |w| clamp_s(dot(w, 4, true) + w.s(2, 32), 32)),
    ("v_dot8_u32_u4 clamp", 32, |w| clamp_u(dot(w, 4, false) + w.u(2, 32), 32)),
    ("v_sad_u8", 32, |w| sad(w.u(0, 32), w.u(1, 32), 8, false) + w.u(2, 32)),
    ("v_sad_hi_u8", 32, |w| (sad(w.u(0, 32), w.u(1, 32), 8, false) << 16) + w.u(2, 32)),
    ("v_sad_u16", 32, |w| sad(w.u(0, 32), w.u(1, 32), 16, false) + w.u(2, 32)),
    ("v_sad_u32", 32, |w| sad(w.u(0, 32), w.u(1, 32), 32, false) + w.u(2, 32)),
    ("v_msad_u8", 32, |w| sad(w.u(0, 32), w.u(1, 32), 8, true) + w.u(2, 32)),
    ("v_mad_legacy_u16 clamp", 16, |w| clamp_u(w.u(0, 16) * w.u(1, 16) + w.u(2, 16), 16)),
    ("v_mad_legacy_i16 clamp", 16, |w| clamp_s(w.s(0, 16) * w.s(1, 16) + w.s(2, 16), 16)),
    ("v_dot2c_i32_i16 clamp", 32, |w| clamp_s(dot(w, 16, true) + w.s(2, 32), 32)),
    ("v_dot4c_i32_i8 clamp", 32, |w| clamp_s(dot(w, 8, true) + w.s(2, 32), 32)),
    ("v_dot8c_i32_i4 clamp", 32, |w| clamp_s(dot(w, 4, true) + w.s(2, 32), 32)),
    ("v_sad_hi_u8 clamp", 32, |w| {
        clamp_u((sad(w.u(0, 32), w.u(1, 32), 8, false) << 16) + w.u(2, 32), 32)
    }),
    ("v_sad_u16 clamp", 32, |w| clamp_u(sad(w.u(0, 32), w.u(1, 32), 16, false) + w.u(2, 32), 32)),
    ("v_sad_u32 clamp", 32, |w| clamp_u(sad(w.u(0, 32), w.u(1, 32), 32, false) + w.u(2, 32), 32)),
    ("v_msad_u8 clamp", 32, |w| clamp_u(sad(w.u(0, 32), w.u(1, 32), 8, true) + w.u(2, 32), 32)),
    ("v_sad_u8 clamp", 32, |w| clamp_u(sad(w.u(0, 32), w.u(1, 32), 8, false) + w.u(2, 32), 32)),
    ("v_qsad_pk_u16_u8", 64, |w| quad_sad(w, false, false)),
    ("v_mqsad_pk_u16_u8", 64, |w| quad_sad(w, true, false)),
    ("v_qsad_pk_u16_u8 clamp", 64, |w| quad_sad(w, false, true)),
    ("v_mqsad_pk_u16_u8 clamp", 64, |w| quad_sad(w, true, true)),
    ("v_lerp_u8", 32, |w| {
        let byte = |source: usize, at: u32| w.u(source, 32) >> (8 * at) & 0xff;
        (0..4).map(|i| ((byte(0, i) + byte(1, i) + byte(2, i) % 2) / 2) << (8 * i)).sum()
    }),
    ("v_sat_pk_u8_i16", 32, |w| {
        let high = Wide([w.0[0] >> 16, 0, 0, 0]);
        clamp_u(w.s(0, 16), 8) | clamp_u(high.s(0, 16), 8) << 8
    }),
];

#[test]
pub fn integer_operations_match_reference() {
    for (name, bits, reference) in TABLE {
        let samples = samples(operation(name), 2000);
        let expected = |sources: &Sources| {
            let value = reference(&Wide(*sources)) as u64;
            let mask = if *bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            Outcome { value: value & mask, mask: false }
        };
        if let Some(difference) = differs(name, DEFAULT_MODE, &samples, expected) {
            panic!("{difference}");
        }
    }
}

/// Name, bits, whether the result saturates, and exact result.
type Carrying = (&'static str, u32, bool, fn(&Wide) -> i128);

const CARRYING: &[Carrying] = &[
    ("v_add_co_u32", 32, false, |w| w.sum_u(32)),
    ("v_sub_co_u32", 32, false, |w| w.u(0, 32) - w.u(1, 32)),
    ("v_subrev_co_u32", 32, false, |w| w.u(1, 32) - w.u(0, 32)),
    ("v_addc_co_u32", 32, false, |w| w.sum_u(32) + w.u(2, 1)),
    ("v_subb_co_u32", 32, false, |w| w.u(0, 32) - w.u(1, 32) - w.u(2, 1)),
    ("v_subbrev_co_u32", 32, false, |w| w.u(1, 32) - w.u(0, 32) - w.u(2, 1)),
    ("v_add_co_u32 clamp", 32, true, |w| w.sum_u(32)),
    ("v_sub_co_u32 clamp", 32, true, |w| w.u(0, 32) - w.u(1, 32)),
    ("v_subrev_co_u32 clamp", 32, true, |w| w.u(1, 32) - w.u(0, 32)),
    ("v_addc_co_u32 clamp", 32, true, |w| w.sum_u(32) + w.u(2, 1)),
    ("v_subb_co_u32 clamp", 32, true, |w| w.u(0, 32) - w.u(1, 32) - w.u(2, 1)),
    ("v_subbrev_co_u32 clamp", 32, true, |w| w.u(1, 32) - w.u(0, 32) - w.u(2, 1)),
    ("v_mad_u64_u32", 64, false, |w| w.u(0, 32) * w.u(1, 32) + w.u(2, 64)),
    ("v_mad_u64_u32 clamp", 64, true, |w| w.u(0, 32) * w.u(1, 32) + w.u(2, 64)),
];

#[test]
pub fn carry_operations_match_reference() {
    for (name, bits, saturates, exact) in CARRYING {
        let samples = samples(operation(name), 2000);
        let expected = |sources: &Sources| {
            let exact = exact(&Wide(*sources));
            let carry = exact < 0 || exact >> bits != 0;
            let value = if *saturates { clamp_u(exact, *bits) } else { exact };
            Outcome { value: value as u64 & (u64::MAX >> (64 - bits)), mask: carry }
        };
        if let Some(difference) = differs(name, DEFAULT_MODE, &samples, expected) {
            panic!("{difference}");
        }
    }
    for (name, saturates) in [("v_mad_i64_i32", false), ("v_mad_i64_i32 clamp", true)] {
        let samples = samples(operation(name), 2000);
        let expected = |sources: &Sources| {
            let wide = Wide(*sources);
            let exact = wide.s(0, 32) * wide.s(1, 32) + wide.s(2, 64);
            let value = if saturates { clamp_s(exact, 64) } else { exact };
            Outcome { value: value as u64, mask: exact < 0 }
        };
        if let Some(difference) = differs(name, DEFAULT_MODE, &samples, expected) {
            panic!("{difference}");
        }
    }
}

/// The scalar result is bit 64 of the 65-bit sum: its sign, not an overflow flag.
#[test]
fn scalar_result_of_wide_multiply_add_is_bit_64_of_the_sum() {
    let least = i64::MIN as u64;
    let minus = |value: u64| u64::from(value.wrapping_neg() as u32);
    for (name, [a, b, c], value, mask) in [
        ("v_mad_i64_i32", [minus(1), 1, 0], u64::MAX, true),
        ("v_mad_i64_i32", [1, 1, 0], 1, false),
        ("v_mad_i64_i32", [1, 1, i64::MAX as u64], least, false),
        ("v_mad_i64_i32", [minus(1), 1, least], i64::MAX as u64, true),
        ("v_mad_i64_i32 clamp", [1, 1, i64::MAX as u64], i64::MAX as u64, false),
        ("v_mad_i64_i32 clamp", [minus(1), 1, least], least, true),
        ("v_mad_u64_u32", [minus(1), 1, 0], 0xffff_ffff, false),
        ("v_mad_u64_u32", [1, 1, u64::MAX], 0, true),
    ] {
        let sources: Sources = [a, b, c, 0];
        let expected = |_: &Sources| Outcome { value, mask };
        let difference = differs(name, DEFAULT_MODE, &[sources], expected);
        assert!(difference.is_none(), "{difference:?}");
    }
}
