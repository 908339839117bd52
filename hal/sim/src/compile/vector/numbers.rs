//! Sums, products, scaling, rounding to integers, and the parts of numbers.

use super::lowering::{Lowering, any, bailing_out, call, half, high_half, low_half, propagates};

/// Product of a number and a power of two: exact in double precision, and rounded once.
const SCALED: &str = "%least = call W @llvm.smax.W(W %b, W #-300)\n\
     %e = call W @llvm.smin.W(W %least, W #300)\n%biased = add W %e, #1023\n\
     %wide = zext W %biased to D\n%high = shl D %wide, splat (i64 52)\n\
     %power = bitcast D %high to E\n%x = fpext F %a to E\n%p = fmul E %x, %power\n\
     %r = fptrunc E %p to F";

/// Product of a double-precision number and a power of two, in two steps: if the first step rounds,
/// the second leaves nothing. Lanes with larger powers bail out.
const SCALED_DOUBLE: &str = "%is.up = icmp sgt W %b, #1023\n%is.down = icmp slt W %b, #-1022\n\
     %near = select M %is.down, W #-969, W %b\n%one = select M %is.up, W #1023, W %near\n\
     %two = sub W %b, %one\n%biased.1 = add W %one, #1023\n%biased.2 = add W %two, #1023\n\
     %wide.1 = zext W %biased.1 to D\n%wide.2 = zext W %biased.2 to D\n\
     %high.1 = shl D %wide.1, splat (i64 52)\n%high.2 = shl D %wide.2, splat (i64 52)\n\
     %power.1 = bitcast D %high.1 to E\n%power.2 = bitcast D %high.2 to E\n\
     %p = fmul E %a, %power.1\n%r = fmul E %p, %power.2\n\
     %past = sub W %biased.2, #1\n%n = icmp ugt W %past, #2045";

/// Product of a half-precision number and a power of two, exact in single precision.
const SCALED_HALF: &str = "%up = shl W %b, #16\n%signed = ashr W %up, #16\n\
     %least = call W @llvm.smax.W(W %signed, W #-60)\n%e = call W @llvm.smin.W(W %least, W #60)\n\
     %biased = add W %e, #127\n%bits = shl W %biased, #23\n%power = bitcast W %bits to F\n\
     %r = fmul F %a, %power";

/// Fused multiply-add of half-precision numbers, exact in double precision except where the lost
/// part cannot matter. The last place of single precision is set if more digits follow, so that the
/// last rounding sees all.
const FUSED_HALF: &str = "%x = fpext F %a to E\n%y = fpext F %b to E\n%z = fpext F %c to E\n\
     %e = call E @llvm.fma.E(E %x, E %y, E %z)\n%bits = bitcast E %e to D\n\
     %below = and D %bits, splat (i64 536870911)\n%some = icmp ne D %below, zeroinitializer\n\
     %last = select M %some, D splat (i64 536870912), D zeroinitializer\n\
     %above = and D %bits, splat (i64 -536870912)\n%odd = or D %above, %last\n\
     %f = bitcast D %odd to E\n%r = fptrunc E %f to F";

/// Decomposition of a single-precision number: its bits in double precision, where it is not
/// denormal, and whether it is zero, infinite or NaN.
macro_rules! parts_of_single {
    ($more:literal) => {
        concat!(
            "%x = fpext F %a to E\n%bits = bitcast E %x to D\n%own = bitcast F %a to W\n\
             %size = and W %own, #2147483647\n%past = sub W %size, #1\n\
             %odd = icmp uge W %past, #2139095039\n",
            $more
        )
    };
}

/// Decomposition of a double-precision number; a denormal number is scaled by a power of two.
macro_rules! parts_of_double {
    ($more:literal) => {
        concat!(
            "%own = bitcast E %a to D\n%size = and D %own, splat (i64 9223372036854775807)\n\
             %past = sub D %size, splat (i64 1)\n\
             %odd = icmp uge D %past, splat (i64 9218868437227405311)\n\
             %small = icmp ult D %size, splat (i64 4503599627370496)\n\
             %up = fmul E %a, splat (double 0x43F0000000000000)\n\
             %normal = select M %small, E %up, E %a\n%bits = bitcast E %normal to D\n",
            $more
        )
    };
}

const MANTISSA: &str = parts_of_single!(
    "%cut = and D %bits, splat (i64 -9218868437227405313)\n\
     %half = or D %cut, splat (i64 4602678819172646912)\n%m = bitcast D %half to E\n\
     %y = fptrunc E %m to F\n%r = select M %odd, F %a, F %y"
);
const EXPONENT: &str = parts_of_single!(
    "%high = lshr D %bits, splat (i64 52)\n%w = trunc D %high to W\n%e = and W %w, #2047\n\
     %y = sub W %e, #1022\n%r = select M %odd, W zeroinitializer, W %y"
);

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
    propagates(
        "v_fract_f32",
        "%x = call F @llvm.floor.F(F %a)\n%y = fsub F %a, %x\n\
         %over = fcmp ogt F %y, splat (float 0x3FEFFFFFE0000000)\n\
         %r = select M %over, F splat (float 0x3FEFFFFFE0000000), F %y",
    ),
    propagates("v_ldexp_f32", SCALED),
    propagates("v_frexp_mant_f32", MANTISSA),
    any("v_frexp_exp_i32_f32", EXPONENT),
    propagates("v_fma_mix_f32", call!("fma", "F", "%a", "%b", "%c")),
    // Half precision.
    half(propagates("v_add_f16", "%r = fadd F %a, %b")),
    half(propagates("v_sub_f16", "%r = fsub F %a, %b")),
    half(propagates("v_subrev_f16", "%r = fsub F %b, %a")),
    half(propagates("v_mul_f16", "%r = fmul F %a, %b")),
    low_half(propagates("v_fma_f16", FUSED_HALF)),
    low_half(propagates("v_fmac_f16", FUSED_HALF)),
    low_half(propagates("v_fmaak_f16", FUSED_HALF)),
    low_half(propagates("v_fmamk_f16", FUSED_HALF)),
    half(propagates("v_fma_legacy_f16", FUSED_HALF)),
    low_half(propagates("v_fma_mixlo_f16", call!("fma", "F", "%a", "%b", "%c"))),
    high_half(propagates("v_fma_mixhi_f16", call!("fma", "F", "%a", "%b", "%c"))),
    half(propagates("v_floor_f16", call!("floor", "F", "%a"))),
    half(propagates("v_ceil_f16", call!("ceil", "F", "%a"))),
    half(propagates("v_trunc_f16", call!("trunc", "F", "%a"))),
    half(propagates("v_rndne_f16", call!("roundeven", "F", "%a"))),
    half(propagates(
        "v_fract_f16",
        "%x = call F @llvm.floor.F(F %a)\n%y = fsub F %a, %x\n\
         %over = fcmp ogt F %y, splat (float 0x3FEFFC0000000000)\n\
         %r = select M %over, F splat (float 0x3FEFFC0000000000), F %y",
    )),
    half(propagates("v_ldexp_f16", SCALED_HALF)),
    half(propagates("v_frexp_mant_f16", MANTISSA)),
    half(any("v_frexp_exp_i16_f16", EXPONENT)),
    // Double precision.
    propagates("v_add_f64", "%r = fadd E %a, %b"),
    propagates("v_mul_f64", "%r = fmul E %a, %b"),
    propagates("v_fma_f64", call!("fma", "E", "%a", "%b", "%c")),
    propagates("v_fmac_f64", call!("fma", "E", "%a", "%b", "%c")),
    propagates("v_fmaak_f64", call!("fma", "E", "%a", "%b", "%c")),
    propagates("v_fmamk_f64", call!("fma", "E", "%a", "%b", "%c")),
    propagates("v_floor_f64", call!("floor", "E", "%a")),
    propagates("v_ceil_f64", call!("ceil", "E", "%a")),
    propagates("v_trunc_f64", call!("trunc", "E", "%a")),
    propagates("v_rndne_f64", call!("roundeven", "E", "%a")),
    propagates(
        "v_fract_f64",
        "%x = call E @llvm.floor.E(E %a)\n%y = fsub E %a, %x\n\
         %over = fcmp ogt E %y, splat (double 0x3FEFFFFFFFFFFFFF)\n\
         %r = select M %over, E splat (double 0x3FEFFFFFFFFFFFFF), E %y",
    ),
    bailing_out(propagates("v_ldexp_f64", SCALED_DOUBLE)),
    propagates(
        "v_frexp_mant_f64",
        parts_of_double!(
            "%cut = and D %bits, splat (i64 -9218868437227405313)\n\
             %half = or D %cut, splat (i64 4602678819172646912)\n%m = bitcast D %half to E\n\
             %r = select M %odd, E %a, E %m"
        ),
    ),
    any(
        "v_frexp_exp_i32_f64",
        parts_of_double!(
            "%high = lshr D %bits, splat (i64 52)\n%w = trunc D %high to W\n\
             %e = and W %w, #2047\n%less = select M %small, W #1086, W #1022\n\
             %y = sub W %e, %less\n%r = select M %odd, W zeroinitializer, W %y"
        ),
    ),
];
