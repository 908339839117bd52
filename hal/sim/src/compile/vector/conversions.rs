//! Conversions, and packing of two results into a word.

use super::lowering::{Lowering, any, half, halves, line, numbers, propagates};

/// Truncation of a single-precision number to what half precision can hold: a multiple of its least
/// number, with as many digits.
macro_rules! truncated {
    ($a:literal, $r:literal) => {
        concat!(
            line!($r, ".bits = bitcast F ", $a, " to W"),
            line!($r, ".cut = and W ", $r, ".bits, #-8192"),
            line!($r, ".normal = bitcast W ", $r, ".cut to F"),
            line!($r, ".many = fmul F ", $a, ", splat (float 0x4170000000000000)"),
            line!($r, ".whole = call F @llvm.trunc.F(F ", $r, ".many)"),
            line!($r, ".little = fmul F ", $r, ".whole, splat (float 0x3E70000000000000)"),
            line!($r, ".size = and W ", $r, ".bits, #2147483647"),
            line!($r, ".is.little = icmp ult W ", $r, ".size, #947912704"),
            line!($r, ".any = select M ", $r, ".is.little, F ", $r, ".little, F ", $r, ".normal"),
            line!($r, ".past = sub W ", $r, ".size, #1199570944"),
            line!($r, ".is.large = icmp ult W ", $r, ".past, #939524096"),
            line!($r, ".sign = and W ", $r, ".bits, #-2147483648"),
            line!($r, ".greatest.bits = or W ", $r, ".sign, #1199562752"),
            line!($r, ".greatest = bitcast W ", $r, ".greatest.bits to F"),
            concat!($r, " = select M ", $r, ".is.large, F ", $r, ".greatest, F ", $r, ".any")
        )
    };
}

/// Rounding to the nearest bfloat16. A NaN becomes quiet.
macro_rules! brain {
    ($a:literal, $r:literal) => {
        concat!(
            line!($r, ".bits = bitcast F ", $a, " to W"),
            line!($r, ".high = lshr W ", $r, ".bits, #16"),
            line!($r, ".last = and W ", $r, ".high, #1"),
            line!($r, ".half = add W ", $r, ".last, #32767"),
            line!($r, ".sum = add W ", $r, ".bits, ", $r, ".half"),
            line!($r, ".near = lshr W ", $r, ".sum, #16"),
            line!($r, ".quiet = or W ", $r, ".high, #64"),
            line!($r, ".nan = fcmp uno F ", $a, ", ", $a),
            concat!($r, " = select M ", $r, ".nan, W ", $r, ".quiet, W ", $r, ".near")
        )
    };
}

pub const TABLE: &[Lowering] = &[
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
    half(propagates("v_cvt_f16_f32", "%x = bitcast F %a to W\n%r = bitcast W %x to F")),
    propagates("v_cvt_f32_f16", "%x = bitcast F %a to W\n%r = bitcast W %x to F"),
    propagates("v_cvt_f32_f64", "%r = fptrunc E %a to F"),
    propagates("v_cvt_f64_f32", "%r = fpext F %a to E"),
    half(any(
        "v_cvt_u16_f16",
        "%x = call W @llvm.fptosi.sat.W.F(F %a)\n%y = call W @llvm.smax.W(W %x, W zeroinitializer)\n\
         %r = call W @llvm.smin.W(W %y, W #65535)",
    )),
    half(any(
        "v_cvt_i16_f16",
        "%x = call W @llvm.fptosi.sat.W.F(F %a)\n%y = call W @llvm.smax.W(W %x, W #-32768)\n\
         %r = call W @llvm.smin.W(W %y, W #32767)",
    )),
    any(
        "v_cvt_flr_i32_f32",
        "%x = call F @llvm.floor.F(F %a)\n%r = call W @llvm.fptosi.sat.W.F(F %x)",
    ),
    any(
        "v_cvt_pk_u8_f32",
        "%x = call F @llvm.roundeven.F(F %a)\n%y = call W @llvm.fptoui.sat.W.F(F %x)\n\
         %byte = call W @llvm.umin.W(W %y, W #255)\n%number = and W %b, #3\n%by = shl W %number, #3\n\
         %own = shl W %byte, %by\n%ones = shl W #255, %by\n%others = xor W %ones, #-1\n\
         %rest = and W %c, %others\n%r = or W %rest, %own",
    ),
    propagates("v_cvt_f32_bf16", "%x = shl W %a, #16\n%r = bitcast W %x to F"),
    // Results of two halves.
    halves(numbers(
        "v_pack_b32_f16",
        "%x = bitcast F %a to W\n%y = bitcast F %b to W\n%r = bitcast W %x to F\n%s = bitcast W %y to F",
    )),
    halves(numbers(
        "v_cvt_pkrtz_f16_f32",
        concat!(truncated!("%a", "%r"), "\n", truncated!("%b", "%s")),
    )),
    halves(any("v_cvt_pk_bf16_f32", concat!(brain!("%a", "%r"), "\n", brain!("%b", "%s")))),
    halves(any(
        "v_cvt_pk_u16_u32",
        "%r = call W @llvm.umin.W(W %a, W #65535)\n%s = call W @llvm.umin.W(W %b, W #65535)",
    )),
    halves(any(
        "v_cvt_pk_i16_i32",
        "%x = call W @llvm.smax.W(W %a, W #-32768)\n%r = call W @llvm.smin.W(W %x, W #32767)\n\
         %y = call W @llvm.smax.W(W %b, W #-32768)\n%s = call W @llvm.smin.W(W %y, W #32767)",
    )),
];
