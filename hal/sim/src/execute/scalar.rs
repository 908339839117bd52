//! Scalar operations in one table; each row implements the ISA manual's definition (chapter "Scalar
//! ALU operations"; the names `a` and `b` are S0 and S1).

use crate::execute::operand::scalar_word;
use crate::execute::{control, hardware_register};
use crate::instruction::{Op, ScalarOperation, Source, Word};
use crate::wave::{Mode, ScalarIndex, Wave};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Returns the row of an operation.
pub fn find(name: &str) -> Option<&'static ScalarOperation> {
    static INDEX: OnceLock<HashMap<&'static str, &'static ScalarOperation>> = OnceLock::new();
    INDEX.get_or_init(|| TABLE.iter().map(|row| (row.name, row)).collect()).get(name).copied()
}

/// Names of all rows.
#[cfg(test)]
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|row| row.name)
}

trait ScalarValue: Sized {
    const WORDS: u8;
    fn read(wave: &Wave, source: &Source) -> Self;
}

trait ScalarResult {
    fn write(self, wave: &mut Wave, to: ScalarIndex);
}

macro_rules! word {
    ($($type:ty)*) => {$(
        impl ScalarValue for $type {
            const WORDS: u8 = 1;
            #[inline(always)]
            fn read(wave: &Wave, source: &Source) -> Self {
                scalar_word(wave, source.words[0]) as $type
            }
        }
        impl ScalarResult for $type {
            #[inline(always)]
            fn write(self, wave: &mut Wave, to: ScalarIndex) {
                wave.write_scalar(to, self as u32);
            }
        }
    )*};
}

macro_rules! wide {
    ($($type:ty)*) => {$(
        impl ScalarValue for $type {
            const WORDS: u8 = 2;
            #[inline(always)]
            fn read(wave: &Wave, source: &Source) -> Self {
                let low = u64::from(scalar_word(wave, source.words[0]));
                (low | u64::from(scalar_word(wave, source.words[1])) << 32) as $type
            }
        }
        impl ScalarResult for $type {
            #[inline(always)]
            fn write(self, wave: &mut Wave, to: ScalarIndex) {
                wave.write_scalar_pair(to, self as u64);
            }
        }
    )*};
}

word!(u32 i32);
wide!(u64 i64);

impl ScalarResult for () {
    fn write(self, _: &mut Wave, _: ScalarIndex) {}
}

macro_rules! operations {
    ($($name:literal |$wave:ident, $op:ident| ($($a:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        static TABLE: &[ScalarOperation] = &[$({
            #[allow(unused_mut, unused_variables)]
            fn run($wave: &mut Wave, $op: &Op) {
                let mut sources = $op.sources.iter();
                $(let $a = match sources.next() {
                    Some(source) => <$type as ScalarValue>::read($wave, source),
                    None => return,
                };)*
                let result: $result = $body;
                result.write($wave, $op.scalar_destination);
            }
            ScalarOperation {
                name: $name,
                sources: &[$(<$type as ScalarValue>::WORDS),*],
                run,
            }
        }),*];
    };
}

/// Sets SCC if the result is not zero, and returns the result.
macro_rules! nonzero {
    ($wave:ident, $result:expr) => {{
        let result = $result;
        $wave.scc = result != 0;
        result
    }};
}

/// Saves EXEC, as wide as the type, to the destination, then computes a new EXEC.
macro_rules! save_exec {
    ($wave:ident, $exec:ident: $type:ty => $new:expr) => {{
        let $exec = $wave.exec().0 as $type;
        let new: $type = $new;
        new.write($wave, ScalarIndex::EXEC);
        $wave.scc = new != 0;
        $exec
    }};
}

/// Computes a new EXEC and also writes it to the destination.
macro_rules! write_exec {
    ($wave:ident, $exec:ident: $type:ty => $new:expr) => {{
        let $exec = $wave.exec().0 as $type;
        let new: $type = $new;
        new.write($wave, ScalarIndex::EXEC);
        $wave.scc = new != 0;
        new
    }};
}

operations! {
    // SOP2
    "s_add_u32" |w, op| (a: u32, b: u32) -> u32 {
        let (sum, carry) = a.overflowing_add(b);
        w.scc = carry;
        sum
    }
    "s_sub_u32" |w, op| (a: u32, b: u32) -> u32 {
        let (difference, borrow) = a.overflowing_sub(b);
        w.scc = borrow;
        difference
    }
    "s_add_i32" |w, op| (a: i32, b: i32) -> i32 {
        let (sum, overflow) = a.overflowing_add(b);
        w.scc = overflow;
        sum
    }
    "s_sub_i32" |w, op| (a: i32, b: i32) -> i32 {
        let (difference, overflow) = a.overflowing_sub(b);
        w.scc = overflow;
        difference
    }
    "s_addc_u32" |w, op| (a: u32, b: u32) -> u32 {
        let sum = u64::from(a) + u64::from(b) + u64::from(w.scc);
        w.scc = sum >> 32 != 0;
        sum as u32
    }
    "s_subb_u32" |w, op| (a: u32, b: u32) -> u32 {
        let difference = i64::from(a) - i64::from(b) - i64::from(w.scc);
        w.scc = difference < 0;
        difference as u32
    }
    "s_min_i32" |w, op| (a: i32, b: i32) -> i32 { w.scc = a < b; a.min(b) }
    "s_min_u32" |w, op| (a: u32, b: u32) -> u32 { w.scc = a < b; a.min(b) }
    "s_max_i32" |w, op| (a: i32, b: i32) -> i32 { w.scc = a > b; a.max(b) }
    "s_max_u32" |w, op| (a: u32, b: u32) -> u32 { w.scc = a > b; a.max(b) }
    "s_cselect_b32" |w, op| (a: u32, b: u32) -> u32 { if w.scc { a } else { b } }
    "s_cselect_b64" |w, op| (a: u64, b: u64) -> u64 { if w.scc { a } else { b } }
    "s_and_b32" |w, op| (a: u32, b: u32) -> u32 { nonzero!(w, a & b) }
    "s_and_b64" |w, op| (a: u64, b: u64) -> u64 { nonzero!(w, a & b) }
    "s_or_b32" |w, op| (a: u32, b: u32) -> u32 { nonzero!(w, a | b) }
    "s_or_b64" |w, op| (a: u64, b: u64) -> u64 { nonzero!(w, a | b) }
    "s_xor_b32" |w, op| (a: u32, b: u32) -> u32 { nonzero!(w, a ^ b) }
    "s_xor_b64" |w, op| (a: u64, b: u64) -> u64 { nonzero!(w, a ^ b) }
    "s_andn2_b32" |w, op| (a: u32, b: u32) -> u32 { nonzero!(w, a & !b) }
    "s_andn2_b64" |w, op| (a: u64, b: u64) -> u64 { nonzero!(w, a & !b) }
    "s_orn2_b32" |w, op| (a: u32, b: u32) -> u32 { nonzero!(w, a | !b) }
    "s_orn2_b64" |w, op| (a: u64, b: u64) -> u64 { nonzero!(w, a | !b) }
    "s_nand_b32" |w, op| (a: u32, b: u32) -> u32 { nonzero!(w, !(a & b)) }
    "s_nand_b64" |w, op| (a: u64, b: u64) -> u64 { nonzero!(w, !(a & b)) }
    "s_nor_b32" |w, op| (a: u32, b: u32) -> u32 { nonzero!(w, !(a | b)) }
    "s_nor_b64" |w, op| (a: u64, b: u64) -> u64 { nonzero!(w, !(a | b)) }
    "s_xnor_b32" |w, op| (a: u32, b: u32) -> u32 { nonzero!(w, !(a ^ b)) }
    "s_xnor_b64" |w, op| (a: u64, b: u64) -> u64 { nonzero!(w, !(a ^ b)) }
    "s_lshl_b32" |w, op| (a: u32, b: u32) -> u32 { nonzero!(w, a << (b & 31)) }
    "s_lshl_b64" |w, op| (a: u64, b: u32) -> u64 { nonzero!(w, a << (b & 63)) }
    "s_lshr_b32" |w, op| (a: u32, b: u32) -> u32 { nonzero!(w, a >> (b & 31)) }
    "s_lshr_b64" |w, op| (a: u64, b: u32) -> u64 { nonzero!(w, a >> (b & 63)) }
    "s_ashr_i32" |w, op| (a: i32, b: u32) -> i32 { nonzero!(w, a >> (b & 31)) }
    "s_ashr_i64" |w, op| (a: i64, b: u32) -> i64 { nonzero!(w, a >> (b & 63)) }
    "s_bfm_b32" |w, op| (a: u32, b: u32) -> u32 { ((1u32 << (a & 31)) - 1) << (b & 31) }
    "s_bfm_b64" |w, op| (a: u32, b: u32) -> u64 { ((1u64 << (a & 63)) - 1) << (b & 63) }
    "s_add_nc_u64" |w, op| (a: u64, b: u64) -> u64 { a.wrapping_add(b) }
    "s_sub_nc_u64" |w, op| (a: u64, b: u64) -> u64 { a.wrapping_sub(b) }
    "s_mul_u64" |w, op| (a: u64, b: u64) -> u64 { a.wrapping_mul(b) }
    "s_mul_i32" |w, op| (a: u32, b: u32) -> u32 { a.wrapping_mul(b) }
    "s_mul_hi_u32" |w, op| (a: u32, b: u32) -> u32 {
        ((u64::from(a) * u64::from(b)) >> 32) as u32
    }
    "s_mul_hi_i32" |w, op| (a: i32, b: i32) -> i32 {
        ((i64::from(a) * i64::from(b)) >> 32) as i32
    }
    "s_bfe_u32" |w, op| (a: u32, b: u32) -> u32 {
        nonzero!(w, extract(a.into(), b & 31, b >> 16 & 0x7f, 32) as u32)
    }
    "s_bfe_i32" |w, op| (a: u32, b: u32) -> u32 {
        let width = (b >> 16 & 0x7f).min(32 - (b & 31));
        nonzero!(w, sign_extend(extract(a.into(), b & 31, width, 32), width) as u32)
    }
    "s_bfe_u64" |w, op| (a: u64, b: u32) -> u64 {
        nonzero!(w, extract(a, b & 63, b >> 16 & 0x7f, 64))
    }
    "s_bfe_i64" |w, op| (a: u64, b: u32) -> u64 {
        let width = (b >> 16 & 0x7f).min(64 - (b & 63));
        nonzero!(w, sign_extend(extract(a, b & 63, width, 64), width))
    }
    "s_absdiff_i32" |w, op| (a: i32, b: i32) -> u32 {
        nonzero!(w, a.wrapping_sub(b).unsigned_abs())
    }
    "s_lshl1_add_u32" |w, op| (a: u32, b: u32) -> u32 { shift_add(w, a, 1, b) }
    "s_lshl2_add_u32" |w, op| (a: u32, b: u32) -> u32 { shift_add(w, a, 2, b) }
    "s_lshl3_add_u32" |w, op| (a: u32, b: u32) -> u32 { shift_add(w, a, 3, b) }
    "s_lshl4_add_u32" |w, op| (a: u32, b: u32) -> u32 { shift_add(w, a, 4, b) }
    "s_pack_ll_b32_b16" |w, op| (a: u32, b: u32) -> u32 { a & 0xffff | b << 16 }
    "s_pack_lh_b32_b16" |w, op| (a: u32, b: u32) -> u32 { a & 0xffff | b & 0xffff_0000 }
    "s_pack_hl_b32_b16" |w, op| (a: u32, b: u32) -> u32 { a >> 16 | b << 16 }
    "s_pack_hh_b32_b16" |w, op| (a: u32, b: u32) -> u32 { a >> 16 | b & 0xffff_0000 }

    // SOP1
    "s_mov_b32" |w, op| (a: u32) -> u32 { a }
    "s_mov_b64" |w, op| (a: u64) -> u64 { a }
    "s_cmov_b32" |w, op| (a: u32, old: u32) -> u32 { if w.scc { a } else { old } }
    "s_cmov_b64" |w, op| (a: u64, old: u64) -> u64 { if w.scc { a } else { old } }
    "s_not_b32" |w, op| (a: u32) -> u32 { nonzero!(w, !a) }
    "s_not_b64" |w, op| (a: u64) -> u64 { nonzero!(w, !a) }
    "s_wqm_b32" |w, op| (a: u32) -> u32 { nonzero!(w, whole_quads(a.into()) as u32) }
    "s_wqm_b64" |w, op| (a: u64) -> u64 { nonzero!(w, whole_quads(a)) }
    "s_quadmask_b32" |w, op| (a: u32) -> u32 { nonzero!(w, quad_mask(a.into()) as u32) }
    "s_quadmask_b64" |w, op| (a: u64) -> u64 { nonzero!(w, quad_mask(a)) }
    "s_brev_b32" |w, op| (a: u32) -> u32 { a.reverse_bits() }
    "s_brev_b64" |w, op| (a: u64) -> u64 { a.reverse_bits() }
    "s_bcnt0_i32_b32" |w, op| (a: u32) -> u32 { nonzero!(w, a.count_zeros()) }
    "s_bcnt0_i32_b64" |w, op| (a: u64) -> u32 { nonzero!(w, a.count_zeros()) }
    "s_bcnt1_i32_b32" |w, op| (a: u32) -> u32 { nonzero!(w, a.count_ones()) }
    "s_bcnt1_i32_b64" |w, op| (a: u64) -> u32 { nonzero!(w, a.count_ones()) }
    "s_ff0_i32_b32" |w, op| (a: u32) -> i32 { first_one((!a).into()) }
    "s_ff0_i32_b64" |w, op| (a: u64) -> i32 { first_one(!a) }
    "s_ff1_i32_b32" |w, op| (a: u32) -> i32 { first_one(a.into()) }
    "s_ff1_i32_b64" |w, op| (a: u64) -> i32 { first_one(a) }
    "s_flbit_i32_b32" |w, op| (a: u32) -> i32 {
        if a == 0 { -1 } else { a.leading_zeros() as i32 }
    }
    "s_flbit_i32_b64" |w, op| (a: u64) -> i32 {
        if a == 0 { -1 } else { a.leading_zeros() as i32 }
    }
    "s_flbit_i32" |w, op| (a: i32) -> i32 {
        let flipped = a ^ (a >> 31);
        if flipped == 0 { -1 } else { flipped.leading_zeros() as i32 }
    }
    "s_flbit_i32_i64" |w, op| (a: i64) -> i32 {
        let flipped = a ^ (a >> 63);
        if flipped == 0 { -1 } else { flipped.leading_zeros() as i32 }
    }
    "s_sext_i32_i8" |w, op| (a: u32) -> i32 { i32::from(a as i8) }
    "s_sext_i32_i16" |w, op| (a: u32) -> i32 { i32::from(a as i16) }
    "s_bitset0_b32" |w, op| (a: u32, old: u32) -> u32 { old & !(1 << (a & 31)) }
    "s_bitset0_b64" |w, op| (a: u32, old: u64) -> u64 { old & !(1 << (a & 63)) }
    "s_bitset1_b32" |w, op| (a: u32, old: u32) -> u32 { old | 1 << (a & 31) }
    "s_bitset1_b64" |w, op| (a: u32, old: u64) -> u64 { old | 1 << (a & 63) }
    "s_abs_i32" |w, op| (a: i32) -> u32 { nonzero!(w, a.unsigned_abs()) }
    "s_bitreplicate_b64_b32" |w, op| (a: u32) -> u64 {
        (0..32).fold(0, |all, bit| all | (u64::from(a >> bit & 1) * 3) << (2 * bit))
    }
    "s_and_saveexec_b64" |w, op| (a: u64) -> u64 { save_exec!(w, exec: u64 => a & exec) }
    "s_and_saveexec_b32" |w, op| (a: u32) -> u32 { save_exec!(w, exec: u32 => a & exec) }
    "s_or_saveexec_b64" |w, op| (a: u64) -> u64 { save_exec!(w, exec: u64 => a | exec) }
    "s_or_saveexec_b32" |w, op| (a: u32) -> u32 { save_exec!(w, exec: u32 => a | exec) }
    "s_xor_saveexec_b64" |w, op| (a: u64) -> u64 { save_exec!(w, exec: u64 => a ^ exec) }
    "s_xor_saveexec_b32" |w, op| (a: u32) -> u32 { save_exec!(w, exec: u32 => a ^ exec) }
    "s_andn2_saveexec_b64" |w, op| (a: u64) -> u64 { save_exec!(w, exec: u64 => a & !exec) }
    "s_andn2_saveexec_b32" |w, op| (a: u32) -> u32 { save_exec!(w, exec: u32 => a & !exec) }
    "s_orn2_saveexec_b64" |w, op| (a: u64) -> u64 { save_exec!(w, exec: u64 => a | !exec) }
    "s_orn2_saveexec_b32" |w, op| (a: u32) -> u32 { save_exec!(w, exec: u32 => a | !exec) }
    "s_nand_saveexec_b64" |w, op| (a: u64) -> u64 { save_exec!(w, exec: u64 => !(a & exec)) }
    "s_nand_saveexec_b32" |w, op| (a: u32) -> u32 { save_exec!(w, exec: u32 => !(a & exec)) }
    "s_nor_saveexec_b64" |w, op| (a: u64) -> u64 { save_exec!(w, exec: u64 => !(a | exec)) }
    "s_nor_saveexec_b32" |w, op| (a: u32) -> u32 { save_exec!(w, exec: u32 => !(a | exec)) }
    "s_xnor_saveexec_b64" |w, op| (a: u64) -> u64 { save_exec!(w, exec: u64 => !(a ^ exec)) }
    "s_xnor_saveexec_b32" |w, op| (a: u32) -> u32 { save_exec!(w, exec: u32 => !(a ^ exec)) }
    "s_andn1_saveexec_b64" |w, op| (a: u64) -> u64 { save_exec!(w, exec: u64 => !a & exec) }
    "s_andn1_saveexec_b32" |w, op| (a: u32) -> u32 { save_exec!(w, exec: u32 => !a & exec) }
    "s_orn1_saveexec_b64" |w, op| (a: u64) -> u64 { save_exec!(w, exec: u64 => !a | exec) }
    "s_orn1_saveexec_b32" |w, op| (a: u32) -> u32 { save_exec!(w, exec: u32 => !a | exec) }
    "s_andn1_wrexec_b64" |w, op| (a: u64) -> u64 { write_exec!(w, exec: u64 => !a & exec) }
    "s_andn1_wrexec_b32" |w, op| (a: u32) -> u32 { write_exec!(w, exec: u32 => !a & exec) }
    "s_andn2_wrexec_b64" |w, op| (a: u64) -> u64 { write_exec!(w, exec: u64 => a & !exec) }
    "s_andn2_wrexec_b32" |w, op| (a: u32) -> u32 { write_exec!(w, exec: u32 => a & !exec) }

    // SOPC
    "s_cmp_eq_i32" |w, op| (a: i32, b: i32) -> () { w.scc = a == b }
    "s_cmp_lg_i32" |w, op| (a: i32, b: i32) -> () { w.scc = a != b }
    "s_cmp_gt_i32" |w, op| (a: i32, b: i32) -> () { w.scc = a > b }
    "s_cmp_ge_i32" |w, op| (a: i32, b: i32) -> () { w.scc = a >= b }
    "s_cmp_lt_i32" |w, op| (a: i32, b: i32) -> () { w.scc = a < b }
    "s_cmp_le_i32" |w, op| (a: i32, b: i32) -> () { w.scc = a <= b }
    "s_cmp_eq_u32" |w, op| (a: u32, b: u32) -> () { w.scc = a == b }
    "s_cmp_lg_u32" |w, op| (a: u32, b: u32) -> () { w.scc = a != b }
    "s_cmp_gt_u32" |w, op| (a: u32, b: u32) -> () { w.scc = a > b }
    "s_cmp_ge_u32" |w, op| (a: u32, b: u32) -> () { w.scc = a >= b }
    "s_cmp_lt_u32" |w, op| (a: u32, b: u32) -> () { w.scc = a < b }
    "s_cmp_le_u32" |w, op| (a: u32, b: u32) -> () { w.scc = a <= b }
    "s_cmp_eq_u64" |w, op| (a: u64, b: u64) -> () { w.scc = a == b }
    "s_cmp_lg_u64" |w, op| (a: u64, b: u64) -> () { w.scc = a != b }
    "s_bitcmp0_b32" |w, op| (a: u32, b: u32) -> () { w.scc = a >> (b & 31) & 1 == 0 }
    "s_bitcmp1_b32" |w, op| (a: u32, b: u32) -> () { w.scc = a >> (b & 31) & 1 != 0 }
    "s_bitcmp0_b64" |w, op| (a: u64, b: u32) -> () { w.scc = a >> (b & 63) & 1 == 0 }
    "s_bitcmp1_b64" |w, op| (a: u64, b: u32) -> () { w.scc = a >> (b & 63) & 1 != 0 }

    // SOPK: the immediate is sign-extended, for unsigned comparisons zero-extended.
    "s_movk_i32" |w, op| () -> i32 { signed(op) }
    "s_cmovk_i32" |w, op| (old: i32) -> i32 { if w.scc { signed(op) } else { old } }
    "s_cmpk_eq_i32" |w, op| (a: i32) -> () { w.scc = a == signed(op) }
    "s_cmpk_lg_i32" |w, op| (a: i32) -> () { w.scc = a != signed(op) }
    "s_cmpk_gt_i32" |w, op| (a: i32) -> () { w.scc = a > signed(op) }
    "s_cmpk_ge_i32" |w, op| (a: i32) -> () { w.scc = a >= signed(op) }
    "s_cmpk_lt_i32" |w, op| (a: i32) -> () { w.scc = a < signed(op) }
    "s_cmpk_le_i32" |w, op| (a: i32) -> () { w.scc = a <= signed(op) }
    "s_cmpk_eq_u32" |w, op| (a: u32) -> () { w.scc = a == unsigned(op) }
    "s_cmpk_lg_u32" |w, op| (a: u32) -> () { w.scc = a != unsigned(op) }
    "s_cmpk_gt_u32" |w, op| (a: u32) -> () { w.scc = a > unsigned(op) }
    "s_cmpk_ge_u32" |w, op| (a: u32) -> () { w.scc = a >= unsigned(op) }
    "s_cmpk_lt_u32" |w, op| (a: u32) -> () { w.scc = a < unsigned(op) }
    "s_cmpk_le_u32" |w, op| (a: u32) -> () { w.scc = a <= unsigned(op) }
    "s_addk_i32" |w, op| (old: i32) -> i32 {
        let (sum, overflow) = old.overflowing_add(signed(op));
        w.scc = overflow;
        sum
    }
    "s_mulk_i32" |w, op| (old: i32) -> i32 { old.wrapping_mul(signed(op)) }
    "s_getreg_b32" |w, op| () -> u32 { hardware_register::read(w, unsigned(op)) }
    "s_set_gpr_idx_on" |w, op| (a: u32) -> () {
        w.mode.0 |= Mode::GPR_INDEX;
        set_index(w, a, op.immediate as u32);
    }
    "s_set_gpr_idx_off" |w, op| () -> () { w.mode.0 &= !Mode::GPR_INDEX; }
    "s_set_gpr_idx_idx" |w, op| (a: u32) -> () {
        let operands = w.scalar(ScalarIndex::M0) >> 12;
        set_index(w, a, operands);
    }
    "s_set_gpr_idx_mode" |w, op| () -> () {
        let index = w.scalar(ScalarIndex::M0);
        set_index(w, index, op.immediate as u32);
    }
    "s_movrels_b32" |w, op| () -> u32 { w.scalar(relative_source(w, op)) }
    "s_movrels_b64" |w, op| () -> u64 { w.scalar_pair(relative_source(w, op)) }
    "s_movrelsd_2_b32" |w, op| () -> () {
        let m0 = w.scalar(ScalarIndex::M0);
        let Word::Scalar(from) = op.sources[0].words[0] else { return };
        let moved = |index: ScalarIndex, by: u32| {
            ScalarIndex((u32::from(index.0).wrapping_add(by & 0x3ff) & 127) as u8)
        };
        let value = w.scalar(moved(from, m0));
        w.write_scalar(moved(op.scalar_destination, m0 >> 16), value);
    }
    "s_movreld_b32" |w, op| (a: u32) -> () {
        w.write_scalar(control::relative(op.scalar_destination, w), a);
    }
    "s_movreld_b64" |w, op| (a: u64) -> () {
        w.write_scalar_pair(control::relative(op.scalar_destination, w), a);
    }
}

/// Writes the fields of M0 that GPR-index mode uses: the index, and the operands it applies to.
fn set_index(wave: &mut Wave, index: u32, operands: u32) {
    let rest = wave.scalar(ScalarIndex::M0) & !0xf0ff;
    wave.write_scalar(ScalarIndex::M0, rest | index & 0xff | (operands & 0xf) << 12);
}

/// Register that a relative move reads: the named one plus M0.
fn relative_source(wave: &Wave, op: &Op) -> ScalarIndex {
    match op.sources[0].words[0] {
        Word::Scalar(index) => control::relative(index, wave),
        _ => ScalarIndex::M0,
    }
}

fn signed(op: &Op) -> i32 {
    i32::from(op.immediate as i16)
}

fn unsigned(op: &Op) -> u32 {
    u32::from(op.immediate as u16)
}

/// Extracts `width` bits of `value` from `offset`; bits above bit `size` read as zero.
fn extract(value: u64, offset: u32, width: u32, size: u32) -> u64 {
    let width = width.min(size - offset);
    if width == 64 { value >> offset } else { value >> offset & ((1 << width) - 1) }
}

fn sign_extend(value: u64, width: u32) -> u64 {
    match width {
        0 => 0,
        width => ((value << (64 - width)) as i64 >> (64 - width)) as u64,
    }
}

fn shift_add(wave: &mut Wave, a: u32, shift: u32, b: u32) -> u32 {
    let sum = (u64::from(a) << shift) + u64::from(b);
    wave.scc = sum >> 32 != 0;
    sum as u32
}

fn first_one(bits: u64) -> i32 {
    if bits == 0 { -1 } else { bits.trailing_zeros() as i32 }
}

/// Sets all four bits of every quad of lanes that has any bit set.
fn whole_quads(mask: u64) -> u64 {
    let any = (mask | mask >> 1 | mask >> 2 | mask >> 3) & 0x1111_1111_1111_1111;
    any * 15
}

/// Sets bit i if any of lanes 4i to 4i+3 is set.
fn quad_mask(mask: u64) -> u64 {
    (0..16).fold(0, |all, quad| all | u64::from(mask >> (4 * quad) & 15 != 0) << quad)
}

#[cfg(test)]
mod tests;
