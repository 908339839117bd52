//! Integer operations of 16, 32 and 64 bits.

use super::lowering::{Lowering, any, call, half, low_half};

/// Median of three.
macro_rules! median {
    ($least:literal, $greatest:literal) => {
        median!($least, $greatest, "%a", "%b", "%c")
    };
    ($least:literal, $greatest:literal, $a:literal, $b:literal, $c:literal) => {
        concat!(
            concat!("%top = call W @llvm.", $greatest, ".W(W ", $a, ", W ", $b, ")\n"),
            concat!("%low = call W @llvm.", $least, ".W(W ", $a, ", W ", $b, ")\n"),
            concat!("%above = call W @llvm.", $greatest, ".W(W %low, W ", $c, ")\n"),
            call!($least, "W", "%top", "%above")
        )
    };
}

/// A function of the first two sources, followed by a function of that and the third.
macro_rules! after {
    ($first:literal, $second:literal) => {
        after!($first, $second, "%a", "%b", "%c")
    };
    ($first:literal, $second:literal, $a:literal, $b:literal, $c:literal) => {
        concat!(
            concat!("%one = call W @llvm.", $first, ".W(W ", $a, ", W ", $b, ")\n"),
            call!($second, "W", "%one", $c)
        )
    };
}

/// Words of a 64-bit number, as `.low` and `.high` of its name.
macro_rules! words {
    ($name:literal) => {
        concat!(
            concat!($name, ".low = trunc D ", $name, " to W\n"),
            concat!($name, ".up = lshr D ", $name, ", splat (i64 32)\n"),
            concat!($name, ".high = trunc D ", $name, ".up to W\n")
        )
    };
}

/// Combination of `%low` and `%high` to `%r`. Hosts compute with words in fewer steps than with
/// 64-bit numbers, which take twice as many registers and must be put together and taken apart.
macro_rules! by_words {
    ($($code:expr),+ $(,)?) => {
        concat!(
            $($code,)+
            "%low.wide = zext W %low to D\n%high.wide = zext W %high to D\n\
             %high.up = shl D %high.wide, splat (i64 32)\n%r = or D %high.up, %low.wide"
        )
    };
}

/// Sum of 64-bit numbers as `%low` and `%high`; `%carry` is -1 where the sum of the low words
/// carries.
macro_rules! sum {
    ($a:literal, $b:literal) => {
        concat!(
            concat!("%low = add W ", $a, ".low, ", $b, ".low\n"),
            concat!("%over = icmp ult W %low, ", $a, ".low\n%carry = sext M %over to W\n"),
            concat!("%upper = add W ", $a, ".high, ", $b, ".high\n%high = sub W %upper, %carry\n")
        )
    };
}

/// Shift count of a 64-bit number: `%by` as for a word; `%near` tells whether that is the whole
/// count.
macro_rules! distance {
    () => {
        "%by = and W %a, #31\n%far = and W %a, #32\n%near = icmp eq W %far, zeroinitializer\n"
    };
}

/// Sign-extended half words: `%x`, `%y` and `%z`.
macro_rules! with_signs {
    ($($code:tt)*) => {
        concat!(
            "%p = shl W %a, #16\n%q = shl W %b, #16\n%o = shl W %c, #16\n\
             %x = ashr W %p, #16\n%y = ashr W %q, #16\n%z = ashr W %o, #16\n",
            $($code)*
        )
    };
}

pub const TABLE: &[Lowering] = &[
    // 32-bit integers.
    any("v_add_u32", "%r = add W %a, %b"),
    any("v_sub_u32", "%r = sub W %a, %b"),
    any("v_subrev_u32", "%r = sub W %b, %a"),
    any("v_add_i32", "%r = add W %a, %b"),
    any("v_sub_i32", "%r = sub W %a, %b"),
    any("v_add_co_u32", "%r = add W %a, %b\n%s = icmp ult W %r, %a"),
    any("v_sub_co_u32", "%r = sub W %a, %b\n%s = icmp ult W %a, %b"),
    any("v_subrev_co_u32", "%r = sub W %b, %a\n%s = icmp ult W %b, %a"),
    any(
        "v_addc_co_u32",
        "%x = add W %a, %b\n%one = icmp ult W %x, %a\n%in = zext M %c to W\n%r = add W %x, %in\n\
         %two = icmp ult W %r, %x\n%s = or M %one, %two",
    ),
    any(
        "v_subb_co_u32",
        "%x = sub W %a, %b\n%one = icmp ult W %a, %b\n%in = zext M %c to W\n%r = sub W %x, %in\n\
         %two = icmp ult W %x, %in\n%s = or M %one, %two",
    ),
    any(
        "v_subbrev_co_u32",
        "%x = sub W %b, %a\n%one = icmp ult W %b, %a\n%in = zext M %c to W\n%r = sub W %x, %in\n\
         %two = icmp ult W %x, %in\n%s = or M %one, %two",
    ),
    any("v_add3_u32", "%x = add W %a, %b\n%r = add W %x, %c"),
    any("v_add_lshl_u32", "%x = add W %a, %b\n%by = and W %c, #31\n%r = shl W %x, %by"),
    any("v_lshl_add_u32", "%by = and W %b, #31\n%x = shl W %a, %by\n%r = add W %x, %c"),
    any("v_xad_u32", "%x = xor W %a, %b\n%r = add W %x, %c"),
    any("v_mul_lo_u32", "%r = mul W %a, %b"),
    any(
        "v_mul_hi_u32",
        "%x = zext W %a to D\n%y = zext W %b to D\n%p = mul D %x, %y\n\
         %h = lshr D %p, splat (i64 32)\n%r = trunc D %h to W",
    ),
    any(
        "v_mul_hi_i32",
        "%x = sext W %a to D\n%y = sext W %b to D\n%p = mul D %x, %y\n\
         %h = lshr D %p, splat (i64 32)\n%r = trunc D %h to W",
    ),
    any("v_mul_u32_u24", "%x = and W %a, #16777215\n%y = and W %b, #16777215\n%r = mul W %x, %y"),
    any(
        "v_mul_i32_i24",
        "%p = shl W %a, #8\n%q = shl W %b, #8\n%x = ashr W %p, #8\n%y = ashr W %q, #8\n\
         %r = mul W %x, %y",
    ),
    any(
        "v_mul_hi_u32_u24",
        "%p = and W %a, #16777215\n%q = and W %b, #16777215\n%x = zext W %p to D\n\
         %y = zext W %q to D\n%z = mul D %x, %y\n%h = lshr D %z, splat (i64 32)\n\
         %r = trunc D %h to W",
    ),
    any(
        "v_mul_hi_i32_i24",
        "%p = shl W %a, #8\n%q = shl W %b, #8\n%v = ashr W %p, #8\n%w = ashr W %q, #8\n\
         %x = sext W %v to D\n%y = sext W %w to D\n%z = mul D %x, %y\n\
         %h = lshr D %z, splat (i64 32)\n%r = trunc D %h to W",
    ),
    any(
        "v_mad_u32_u24",
        "%x = and W %a, #16777215\n%y = and W %b, #16777215\n%p = mul W %x, %y\n%r = add W %p, %c",
    ),
    any(
        "v_mad_i32_i24",
        "%p = shl W %a, #8\n%q = shl W %b, #8\n%x = ashr W %p, #8\n%y = ashr W %q, #8\n\
         %z = mul W %x, %y\n%r = add W %z, %c",
    ),
    any("v_min3_u32", after!("umin", "umin")),
    any("v_max3_u32", after!("umax", "umax")),
    any("v_min3_i32", after!("smin", "smin")),
    any("v_max3_i32", after!("smax", "smax")),
    any("v_min_u32", call!("umin", "W", "%a", "%b")),
    any("v_max_u32", call!("umax", "W", "%a", "%b")),
    any("v_min_i32", call!("smin", "W", "%a", "%b")),
    any("v_max_i32", call!("smax", "W", "%a", "%b")),
    any("v_mad_u32", "%x = mul W %a, %b\n%r = add W %x, %c"),
    any("v_mad_u32_u16", "%x = mul W %a, %b\n%r = add W %x, %c"),
    any(
        "v_mad_i32_i16",
        "%p = shl W %a, #16\n%q = shl W %b, #16\n%x = ashr W %p, #16\n%y = ashr W %q, #16\n\
         %z = mul W %x, %y\n%r = add W %z, %c",
    ),
    any("v_med3_u32", median!("umin", "umax")),
    any("v_med3_i32", median!("smin", "smax")),
    any("v_maxmin_u32", after!("umax", "umin")),
    any("v_minmax_u32", after!("umin", "umax")),
    any("v_maxmin_i32", after!("smax", "smin")),
    any("v_minmax_i32", after!("smin", "smax")),
    // 64-bit integers.
    any("v_mov_b64", "%r = or D %a, zeroinitializer"),
    any("v_add_nc_u64", by_words!(words!("%a"), words!("%b"), sum!("%a", "%b"))),
    any(
        "v_sub_nc_u64",
        by_words!(
            words!("%a"),
            words!("%b"),
            "%low = sub W %a.low, %b.low\n%under = icmp ult W %a.low, %b.low\n\
             %borrow = sext M %under to W\n%upper = sub W %a.high, %b.high\n\
             %high = add W %upper, %borrow\n",
        ),
    ),
    any(
        "v_lshl_add_u64",
        by_words!(
            words!("%a"),
            words!("%c"),
            "%by = and W %b, #7\n%x.low = shl W %a.low, %by\n\
             %x.high = call W @llvm.fshl.W(W %a.high, W %a.low, W %by)\n",
            sum!("%x", "%c"),
        ),
    ),
    any(
        "v_lshlrev_b64",
        by_words!(
            words!("%b"),
            distance!(),
            "%x = shl W %b.low, %by\n%y = call W @llvm.fshl.W(W %b.high, W %b.low, W %by)\n\
             %low = select M %near, W %x, W zeroinitializer\n%high = select M %near, W %y, W %x\n",
        ),
    ),
    any(
        "v_lshrrev_b64",
        by_words!(
            words!("%b"),
            distance!(),
            "%x = lshr W %b.high, %by\n%y = call W @llvm.fshr.W(W %b.high, W %b.low, W %by)\n\
             %low = select M %near, W %y, W %x\n%high = select M %near, W %x, W zeroinitializer\n",
        ),
    ),
    any(
        "v_ashrrev_i64",
        by_words!(
            words!("%b"),
            distance!(),
            "%x = ashr W %b.high, %by\n%y = call W @llvm.fshr.W(W %b.high, W %b.low, W %by)\n\
             %sign = ashr W %b.high, #31\n%low = select M %near, W %y, W %x\n\
             %high = select M %near, W %x, W %sign\n",
        ),
    ),
    any(
        "v_mad_u64_u32",
        by_words!(
            "%x = zext W %a to D\n%y = zext W %b to D\n%p = mul D %x, %y\n",
            words!("%p"),
            words!("%c"),
            sum!("%p", "%c"),
            "%one = icmp ult W %upper, %p.high\n%other = icmp ult W %high, %upper\n\
             %s = or M %one, %other\n",
        ),
    ),
    any(
        "v_mad_i64_i32",
        "%x = sext W %a to D\n%y = sext W %b to D\n%p = mul D %x, %y\n%r = add D %p, %c\n\
         %one = xor D %p, %r\n%other = xor D %c, %r\n%both = and D %one, %other\n\
         %sign = xor D %both, %r\n%s = icmp slt D %sign, zeroinitializer",
    ),
    any(
        "v_mad_nc_u64_u32",
        by_words!(
            "%x = zext W %a to D\n%y = zext W %b to D\n%p = mul D %x, %y\n",
            words!("%p"),
            words!("%c"),
            sum!("%p", "%c"),
        ),
    ),
    any(
        "v_mad_nc_i64_i32",
        by_words!(
            "%x = sext W %a to D\n%y = sext W %b to D\n%p = mul D %x, %y\n",
            words!("%p"),
            words!("%c"),
            sum!("%p", "%c"),
        ),
    ),
    any("v_mul_u64", "%r = mul D %a, %b"),
    any("v_min_u64", call!("umin", "D", "%a", "%b")),
    any("v_max_u64", call!("umax", "D", "%a", "%b")),
    any("v_min_i64", call!("smin", "D", "%a", "%b")),
    any("v_max_i64", call!("smax", "D", "%a", "%b")),
    // Half words.
    half(any("v_mov_b16", "%r = or W %a, zeroinitializer")),
    half(any("v_not_b16", "%r = xor W %a, #-1")),
    half(any("v_and_b16", "%r = and W %a, %b")),
    half(any("v_or_b16", "%r = or W %a, %b")),
    half(any("v_xor_b16", "%r = xor W %a, %b")),
    half(any("v_cndmask_b16", "%r = select M %c, W %b, W %a")),
    half(any("v_add_u16", "%r = add W %a, %b")),
    half(any("v_sub_u16", "%r = sub W %a, %b")),
    half(any("v_subrev_u16", "%r = sub W %b, %a")),
    low_half(any("v_add_i16", "%r = add W %a, %b")),
    low_half(any("v_sub_i16", "%r = sub W %a, %b")),
    half(any("v_mul_lo_u16", "%r = mul W %a, %b")),
    low_half(any("v_mad_u16", "%x = mul W %a, %b\n%r = add W %x, %c")),
    low_half(any("v_mad_i16", "%x = mul W %a, %b\n%r = add W %x, %c")),
    half(any("v_mad_legacy_u16", "%x = mul W %a, %b\n%r = add W %x, %c")),
    half(any("v_mad_legacy_i16", "%x = mul W %a, %b\n%r = add W %x, %c")),
    half(any("v_lshlrev_b16", "%by = and W %a, #15\n%r = shl W %b, %by")),
    half(any("v_lshrrev_b16", "%by = and W %a, #15\n%r = lshr W %b, %by")),
    half(any(
        "v_ashrrev_i16",
        "%by = and W %a, #15\n%p = shl W %b, #16\n%x = ashr W %p, #16\n%r = ashr W %x, %by",
    )),
    half(any("v_min_u16", call!("umin", "W", "%a", "%b"))),
    half(any("v_max_u16", call!("umax", "W", "%a", "%b"))),
    half(any("v_min_i16", with_signs!(call!("smin", "W", "%x", "%y")))),
    half(any("v_max_i16", with_signs!(call!("smax", "W", "%x", "%y")))),
    low_half(any("v_min3_u16", after!("umin", "umin"))),
    low_half(any("v_max3_u16", after!("umax", "umax"))),
    low_half(any("v_med3_u16", median!("umin", "umax"))),
    low_half(any("v_min3_i16", with_signs!(after!("smin", "smin", "%x", "%y", "%z")))),
    low_half(any("v_max3_i16", with_signs!(after!("smax", "smax", "%x", "%y", "%z")))),
    low_half(any("v_med3_i16", with_signs!(median!("smin", "smax", "%x", "%y", "%z")))),
    any("v_cvt_u32_u16", "%r = or W %a, zeroinitializer"),
    any("v_cvt_i32_i16", "%x = shl W %a, #16\n%r = ashr W %x, #16"),
];
