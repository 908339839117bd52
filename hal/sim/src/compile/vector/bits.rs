//! Moves, bitwise operations, shifts and bit fields of words.

use super::lowering::{Lowering, any, by_lane, call};

pub const TABLE: &[Lowering] = &[
    any("v_mov_b32", "%r = or W %a, zeroinitializer"),
    any("v_accvgpr_read_b32", "%r = or W %a, zeroinitializer"),
    any("v_accvgpr_write_b32", "%r = or W %a, zeroinitializer"),
    any("v_accvgpr_mov_b32", "%r = or W %a, zeroinitializer"),
    any("v_cndmask_b32", "%r = select M %c, W %b, W %a"),
    any("v_not_b32", "%r = xor W %a, #-1"),
    any("v_and_b32", "%r = and W %a, %b"),
    any("v_or_b32", "%r = or W %a, %b"),
    any("v_xor_b32", "%r = xor W %a, %b"),
    any("v_xnor_b32", "%x = xor W %a, %b\n%r = xor W %x, #-1"),
    any("v_xor3_b32", "%x = xor W %a, %b\n%r = xor W %x, %c"),
    any("v_and_or_b32", "%x = and W %a, %b\n%r = or W %x, %c"),
    any("v_or3_b32", "%x = or W %a, %b\n%r = or W %x, %c"),
    any("v_lshl_or_b32", "%by = and W %b, #31\n%x = shl W %a, %by\n%r = or W %x, %c"),
    any("v_lshlrev_b32", "%by = and W %a, #31\n%r = shl W %b, %by"),
    any("v_lshrrev_b32", "%by = and W %a, #31\n%r = lshr W %b, %by"),
    any("v_ashrrev_i32", "%by = and W %a, #31\n%r = ashr W %b, %by"),
    any("v_alignbit_b32", call!("fshr", "W", "%a", "%b", "%c")),
    any(
        "v_bfe_u32",
        "%by = and W %b, #31\n%width = and W %c, #31\n%field = lshr W %a, %by\n\
         %over = shl W #1, %width\n%ones = sub W %over, #1\n%r = and W %field, %ones",
    ),
    any("v_bfi_b32", "%x = xor W %b, %c\n%y = and W %x, %a\n%r = xor W %y, %c"),
    any(
        "v_bfm_b32",
        "%by = and W %b, #31\n%width = and W %a, #31\n%over = shl W #1, %width\n\
         %ones = sub W %over, #1\n%r = shl W %ones, %by",
    ),
    any("v_bfrev_b32", call!("bitreverse", "W", "%a")),
    any("v_bcnt_u32_b32", "%x = call W @llvm.ctpop.W(W %a)\n%r = add W %x, %b"),
    any(
        "v_alignbyte_b32",
        "%bytes = and W %c, #3\n%by = shl W %bytes, #3\n%r = call W @llvm.fshr.W(W %a, W %b, W %by)",
    ),
    any(
        "v_bfe_i32",
        "%by = and W %b, #31\n%width = and W %c, #31\n%field = ashr W %a, %by\n\
         %over = sub W #32, %width\n%above = and W %over, #31\n%high = shl W %field, %above\n\
         %whole = ashr W %high, %above\n%none = icmp eq W %width, zeroinitializer\n\
         %r = select M %none, W zeroinitializer, W %whole",
    ),
    any(
        "v_ffbh_u32",
        "%x = call W @llvm.ctlz.W(W %a, i1 false)\n%none = icmp eq W %a, zeroinitializer\n\
         %r = select M %none, W #-1, W %x",
    ),
    any(
        "v_ffbl_b32",
        "%x = call W @llvm.cttz.W(W %a, i1 false)\n%none = icmp eq W %a, zeroinitializer\n\
         %r = select M %none, W #-1, W %x",
    ),
    any(
        "v_ffbh_i32",
        "%sign = ashr W %a, #31\n%own = xor W %a, %sign\n\
         %x = call W @llvm.ctlz.W(W %own, i1 false)\n%none = icmp eq W %own, zeroinitializer\n\
         %r = select M %none, W #-1, W %x",
    ),
    // Counts of the mask bits of lower lanes, for each half of a wave.
    by_lane(any(
        "v_mbcnt_lo_u32_b32",
        "%is.low = icmp ult W %c, #32\n%by = and W %c, #31\n%bit = shl W #1, %by\n\
         %ones = sub W %bit, #1\n%below = select M %is.low, W %ones, W #-1\n\
         %own = and W %a, %below\n%x = call W @llvm.ctpop.W(W %own)\n%r = add W %x, %b",
    )),
    by_lane(any(
        "v_mbcnt_hi_u32_b32",
        "%is.low = icmp ult W %c, #32\n%by = and W %c, #31\n%bit = shl W #1, %by\n\
         %ones = sub W %bit, #1\n%below = select M %is.low, W zeroinitializer, W %ones\n\
         %own = and W %a, %below\n%x = call W @llvm.ctpop.W(W %own)\n%r = add W %x, %b",
    )),
];
