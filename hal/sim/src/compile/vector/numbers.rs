//! Floating-point numbers, and conversions.

use super::{Lowering, any, call, half, low_half, numbers, propagates};

/// One of two that are no NaNs, minus zero being less than plus zero: the first if it is on that side of
/// the other, or if neither is and `$bits`, which is one of them, has a minus sign.
macro_rules! extreme {
    ($before:literal, $unless:literal, $bits:literal, $a:literal, $b:literal, $r:literal) => {
        concat!(
            extreme!(@ $r, ".first = fcmp ", $before, " F ", $a, ", ", $b),
            extreme!(@ $r, ".not = fcmp ", $unless, " F ", $a, ", ", $b),
            extreme!(@ $r, ".bits = bitcast F ", $bits, " to W"),
            extreme!(@ $r, ".minus = icmp slt W ", $r, ".bits, zeroinitializer"),
            extreme!(@ $r, ".tie = and M ", $r, ".not, ", $r, ".minus"),
            extreme!(@ $r, ".takes = or M ", $r, ".first, ", $r, ".tie"),
            concat!($r, " = select M ", $r, ".takes, F ", $a, ", F ", $b)
        )
    };
    (@ $($part:literal),+) => { concat!($($part,)+ "\n") };
}
macro_rules! lesser {
    ($a:literal, $b:literal, $r:literal) => {
        extreme!("olt", "ule", $a, $a, $b, $r)
    };
}
macro_rules! greater {
    ($a:literal, $b:literal, $r:literal) => {
        extreme!("ogt", "uge", $b, $a, $b, $r)
    };
}
const LESSER: &str = lesser!("%a", "%b", "%r");
const GREATER: &str = greater!("%a", "%b", "%r");

/// The one in the middle of three that are no NaNs: the greater without one that equals the greatest,
/// where zeros of both signs are equal.
const MEDIAN: &str = concat!(
    greater!("%a", "%b", "%ab"),
    "\n",
    greater!("%ab", "%c", "%top"),
    "\n%isa = fcmp oeq F %a, %top\n%isb = fcmp oeq F %b, %top\n%any = or M %isa, %isb\n\
     %one = select M %isa, F %b, F %a\n%other = select M %any, F %c, F %b\n",
    greater!("%one", "%other", "%r")
);

/// A number times a power of two: exact in double precision, and rounded once.
const SCALED: &str = "%least = call W @llvm.smax.W(W %b, W #-300)\n\
     %e = call W @llvm.smin.W(W %least, W #300)\n%biased = add W %e, #1023\n\
     %wide = zext W %biased to D\n%high = shl D %wide, splat (i64 52)\n\
     %power = bitcast D %high to E\n%x = fpext F %a to E\n%p = fmul E %x, %power\n\
     %r = fptrunc E %p to F";

/// A fused product and sum of halves, which double precision holds but where so much is lost that it
/// cannot matter, with the last place of single precision set where there is more after it: so the last
/// rounding sees all.
const FUSED_HALF: &str = "%x = fpext F %a to E\n%y = fpext F %b to E\n%z = fpext F %c to E\n\
     %e = call E @llvm.fma.E(E %x, E %y, E %z)\n%bits = bitcast E %e to D\n\
     %below = and D %bits, splat (i64 536870911)\n%some = icmp ne D %below, zeroinitializer\n\
     %last = select M %some, D splat (i64 536870912), D zeroinitializer\n\
     %above = and D %bits, splat (i64 -536870912)\n%odd = or D %above, %last\n\
     %f = bitcast D %odd to E\n%r = fptrunc E %f to F";

pub const TABLE: &[Lowering] = &[
    // Single precision.
    propagates("v_add_f32", "%r = fadd F %a, %b"),
    propagates("v_sub_f32", "%r = fsub F %a, %b"),
    propagates("v_subrev_f32", "%r = fsub F %b, %a"),
    propagates("v_mul_f32", "%r = fmul F %a, %b"),
    propagates("v_fma_f32", call!("fma", "F", "%a", "%b", "%c")),
    propagates("v_fmac_f32", call!("fma", "F", "%a", "%b", "%c")),
    propagates("v_fmaak_f32", call!("fma", "F", "%a", "%b", "%c")),
    propagates("v_fmamk_f32", call!("fma", "F", "%a", "%b", "%c")),
    propagates("v_floor_f32", call!("floor", "F", "%a")),
    propagates("v_ceil_f32", call!("ceil", "F", "%a")),
    propagates("v_trunc_f32", call!("trunc", "F", "%a")),
    propagates("v_rndne_f32", call!("roundeven", "F", "%a")),
    numbers("v_min_f32", LESSER),
    numbers("v_max_f32", GREATER),
    propagates(
        "v_fract_f32",
        "%x = call F @llvm.floor.F(F %a)\n%y = fsub F %a, %x\n\
         %over = fcmp ogt F %y, splat (float 0x3FEFFFFFE0000000)\n\
         %r = select M %over, F splat (float 0x3FEFFFFFE0000000), F %y",
    ),
    propagates("v_ldexp_f32", SCALED),
    numbers("v_min3_f32", concat!(lesser!("%a", "%b", "%x"), "\n", lesser!("%x", "%c", "%r"))),
    numbers("v_max3_f32", concat!(greater!("%a", "%b", "%x"), "\n", greater!("%x", "%c", "%r"))),
    numbers("v_maxmin_f32", concat!(greater!("%a", "%b", "%x"), "\n", lesser!("%x", "%c", "%r"))),
    numbers("v_minmax_f32", concat!(lesser!("%a", "%b", "%x"), "\n", greater!("%x", "%c", "%r"))),
    numbers("v_med3_f32", MEDIAN),
    // Half precision.
    half(propagates("v_add_f16", "%r = fadd F %a, %b")),
    half(propagates("v_sub_f16", "%r = fsub F %a, %b")),
    half(propagates("v_subrev_f16", "%r = fsub F %b, %a")),
    half(propagates("v_mul_f16", "%r = fmul F %a, %b")),
    low_half(propagates("v_fma_f16", FUSED_HALF)),
    low_half(propagates("v_fmac_f16", FUSED_HALF)),
    half(numbers("v_min_f16", LESSER)),
    half(numbers("v_max_f16", GREATER)),
    half(propagates("v_floor_f16", call!("floor", "F", "%a"))),
    half(propagates("v_ceil_f16", call!("ceil", "F", "%a"))),
    half(propagates("v_trunc_f16", call!("trunc", "F", "%a"))),
    half(propagates("v_rndne_f16", call!("roundeven", "F", "%a"))),
    half(propagates("v_cvt_f16_f32", "%x = bitcast F %a to W\n%r = bitcast W %x to F")),
    propagates("v_cvt_f32_f16", "%x = bitcast F %a to W\n%r = bitcast W %x to F"),
    // Double precision.
    propagates("v_add_f64", "%r = fadd E %a, %b"),
    propagates("v_mul_f64", "%r = fmul E %a, %b"),
    propagates("v_fma_f64", call!("fma", "E", "%a", "%b", "%c")),
    propagates("v_fmac_f64", call!("fma", "E", "%a", "%b", "%c")),
    propagates("v_floor_f64", call!("floor", "E", "%a")),
    propagates("v_ceil_f64", call!("ceil", "E", "%a")),
    propagates("v_trunc_f64", call!("trunc", "E", "%a")),
    propagates("v_rndne_f64", call!("roundeven", "E", "%a")),
    numbers(
        "v_min_f64",
        "%less = fcmp olt E %a, %b\n%not = fcmp ule E %a, %b\n%bits = bitcast E %a to D\n\
         %negative = icmp slt D %bits, zeroinitializer\n%tie = and M %not, %negative\n\
         %first = or M %less, %tie\n%r = select M %first, E %a, E %b",
    ),
    numbers(
        "v_max_f64",
        "%more = fcmp ogt E %a, %b\n%not = fcmp uge E %a, %b\n%bits = bitcast E %b to D\n\
         %negative = icmp slt D %bits, zeroinitializer\n%tie = and M %not, %negative\n\
         %first = or M %more, %tie\n%r = select M %first, E %a, E %b",
    ),
    propagates("v_cvt_f32_f64", "%r = fptrunc E %a to F"),
    propagates("v_cvt_f64_f32", "%r = fpext F %a to E"),
    // Conversions.
    any("v_cvt_f32_i32", "%r = sitofp W %a to F"),
    any("v_cvt_f32_u32", "%r = uitofp W %a to F"),
    any("v_cvt_i32_f32", "%r = call W @llvm.fptosi.sat.W.F(F %a)"),
    any("v_cvt_u32_f32", "%r = call W @llvm.fptoui.sat.W.F(F %a)"),
    any("v_cvt_f64_i32", "%r = sitofp W %a to E"),
    any("v_cvt_f64_u32", "%r = uitofp W %a to E"),
    any("v_cvt_f32_ubyte0", "%x = and W %a, #255\n%r = uitofp W %x to F"),
    any("v_cvt_f32_ubyte1", "%y = lshr W %a, #8\n%x = and W %y, #255\n%r = uitofp W %x to F"),
    any("v_cvt_f32_ubyte2", "%y = lshr W %a, #16\n%x = and W %y, #255\n%r = uitofp W %x to F"),
    any("v_cvt_f32_ubyte3", "%x = lshr W %a, #24\n%r = uitofp W %x to F"),
    any("v_cvt_i32_f64", "%r = call W @llvm.fptosi.sat.W.E(E %a)"),
    any("v_cvt_u32_f64", "%r = call W @llvm.fptoui.sat.W.E(E %a)"),
    half(any("v_cvt_f16_u16", "%r = uitofp W %a to F")),
    half(any("v_cvt_f16_i16", "%p = shl W %a, #16\n%x = ashr W %p, #16\n%r = sitofp W %x to F")),
];
