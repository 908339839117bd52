//! Steps of a correctly rounded division. The interpreter's implementation documents the algorithm.

use super::lowering::{Lowering, any, bailing_out, propagates};
use std::sync::LazyLock;

/// A floating-point format.
struct Format {
    names: [&'static str; 3],
    /// Vector types of numbers and of their bits, and the scalar type of the bits.
    types: [&'static str; 3],
    /// Number of mantissa bits.
    mantissa: u32,
    /// The sign bit, as a signed number.
    sign: i64,
    /// Exponent of infinity.
    top: i64,
    /// Exponent difference of numerator and denominator at which the quotient overflows, or nearly
    /// does.
    far: i64,
    /// Exponent difference above which quotients round to zero.
    underflow: i64,
    /// Powers of two that scale numbers up and down, one, and the default NaN.
    constants: [&'static str; 4],
}

const SINGLE: Format = Format {
    names: ["v_div_scale_f32", "v_div_fmas_f32", "v_div_fixup_f32"],
    types: ["F", "W", "i32"],
    mantissa: 23,
    sign: i32::MIN as i64,
    top: 0xff,
    far: 96,
    underflow: -150,
    constants: [
        "float 0x43F0000000000000",
        "float 0x3BF0000000000000",
        "float 1.0",
        "float 0x7FF8000000000000",
    ],
};

const DOUBLE: Format = Format {
    names: ["v_div_scale_f64", "v_div_fmas_f64", "v_div_fixup_f64"],
    types: ["E", "D", "i64"],
    mantissa: 52,
    sign: i64::MIN,
    top: 0x7ff,
    far: 768,
    underflow: -1075,
    constants: [
        "double 0x47F0000000000000",
        "double 0x37F0000000000000",
        "double 1.0",
        "double 0x7FF8000000000000",
    ],
};

/// Decomposition of denominator (`%b`) and numerator (`%c`): bits without signs, exponents, and
/// zero tests.
fn parts(format: &Format) -> String {
    let Format { types: [f, w, bits], mantissa, sign, .. } = format;
    let magnitude = !sign;
    format!(
        "%b.bits = bitcast {f} %b to {w}\n\
         %c.bits = bitcast {f} %c to {w}\n\
         %b.size = and {w} %b.bits, splat ({bits} {magnitude})\n\
         %c.size = and {w} %c.bits, splat ({bits} {magnitude})\n\
         %b.exponent = lshr {w} %b.size, splat ({bits} {mantissa})\n\
         %c.exponent = lshr {w} %c.size, splat ({bits} {mantissa})\n\
         %b.zero = icmp eq {w} %b.size, zeroinitializer\n\
         %c.zero = icmp eq {w} %c.size, zeroinitializer\n\
         %distance = sub {w} %c.exponent, %b.exponent\n"
    )
}

/// Scaling of the first source. Numbers with one of the two greatest exponents have denormal
/// reciprocals, except for the least of them.
fn scale(format: &Format) -> String {
    let Format { types: [f, w, bits], mantissa, top, far, constants, .. } = format;
    let [up, down, one, nan] = constants;
    let huge = ((top - 2) << mantissa) + 1;
    let more = (2i64 << mantissa) - 1;
    let denormal = 1 - top / 2;
    parts(format)
        + &format!(
            "%a.bits = bitcast {f} %a to {w}\n\
             %zero = or M %b.zero, %c.zero\n\
             %is.b = icmp eq {w} %a.bits, %b.bits\n\
             %is.c = icmp eq {w} %a.bits, %c.bits\n\
             %far = icmp sge {w} %distance, splat ({bits} {far})\n\
             %b.small = icmp eq {w} %b.exponent, zeroinitializer\n\
             %b.normal = xor M %b.small, splat (i1 true)\n\
             %b.over = sub {w} %b.size, splat ({bits} {huge})\n\
             %b.huge = icmp ult {w} %b.over, splat ({bits} {more})\n\
             %close = icmp sle {w} %distance, splat ({bits} {denormal})\n\
             %finite = icmp slt {w} %b.exponent, splat ({bits} {top})\n\
             %little = and M %close, %finite\n\
             %enough = xor M %little, splat (i1 true)\n\
             %c.small = icmp sle {w} %c.exponent, splat ({bits} {mantissa})\n\
             %up.c = and M %little, %is.c\n\
             %up.any = and M %enough, %c.small\n\
             %up.1 = or M %up.c, %up.any\n\
             %up.2 = select M %b.huge, M zeroinitializer, M %up.1\n\
             %up.3 = or M %b.small, %up.2\n\
             %up = select M %far, M %is.b, M %up.3\n\
             %down.b = and M %little, %is.b\n\
             %down.1 = or M %down.b, %enough\n\
             %down.2 = and M %b.huge, %down.1\n\
             %down = select M %far, M zeroinitializer, M %down.2\n\
             %little.marked = and M %b.normal, %little\n\
             %marked = or M %far, %little.marked\n\
             %s = or M %zero, %marked\n\
             %factor.1 = select M %up, {f} splat ({up}), {f} splat ({one})\n\
             %factor = select M %down, {f} splat ({down}), {f} %factor.1\n\
             %scaled = fmul {f} %a, %factor\n\
             %r = select M %zero, {f} splat ({nan}), {f} %scaled\n\
             %n.1 = fcmp uno {f} %b, %c\n\
             %n.2 = fcmp uno {f} %a, %a\n\
             %n = or M %n.1, %n.2\n"
        )
}

/// The fused step before the last one. Lanes whose results are scaled back bail out, unless they
/// are NaNs.
fn fused(format: &Format) -> String {
    let [f, ..] = format.types;
    format!(
        "%r = call {f} @llvm.fma.{f}({f} %a, {f} %b, {f} %c)\n\
         %number = fcmp ord {f} %r, zeroinitializer\n\
         %n = and M %d, %number\n"
    )
}

/// Quotient with its sign and special cases. Lanes with a NaN numerator or denominator bail out.
fn fix_up(format: &Format) -> String {
    let Format { types: [f, w, bits], mantissa, sign, top, underflow, .. } = format;
    let infinity = top << mantissa;
    let magnitude = !sign;
    let invalid = sign | infinity | 1 << (mantissa - 1);
    parts(format)
        + &format!(
            "%a.bits = bitcast {f} %a to {w}\n\
             %signs = xor {w} %b.bits, %c.bits\n\
             %sign = and {w} %signs, splat ({bits} {sign})\n\
             %b.infinite = icmp eq {w} %b.size, splat ({bits} {infinity})\n\
             %c.infinite = icmp eq {w} %c.size, splat ({bits} {infinity})\n\
             %a.size = and {w} %a.bits, splat ({bits} {magnitude})\n\
             %a.nan = fcmp uno {f} %a, zeroinitializer\n\
             %size.1 = select M %a.nan, {w} splat ({bits} {infinity}), {w} %a.size\n\
             %little = icmp slt {w} %distance, splat ({bits} {underflow})\n\
             %to.zero.1 = or M %b.infinite, %c.zero\n\
             %to.zero = or M %to.zero.1, %little\n\
             %size.2 = select M %to.zero, {w} zeroinitializer, {w} %size.1\n\
             %to.infinity = or M %b.zero, %c.infinite\n\
             %size = select M %to.infinity, {w} splat ({bits} {infinity}), {w} %size.2\n\
             %signed = or {w} %sign, %size\n\
             %zeros = and M %b.zero, %c.zero\n\
             %infinities = and M %b.infinite, %c.infinite\n\
             %invalid = or M %zeros, %infinities\n\
             %result = select M %invalid, {w} splat ({bits} {invalid}), {w} %signed\n\
             %r = bitcast {w} %result to {f}\n\
             %n = fcmp uno {f} %b, %c\n"
        )
}

fn steps(format: &Format) -> [Lowering; 3] {
    let [scale, fused, fix_up] =
        [scale(format), fused(format), fix_up(format)].map(|code| -> &'static str { code.leak() });
    let [scale_name, fused_name, fix_up_name] = format.names;
    [
        bailing_out(any(scale_name, scale)),
        bailing_out(propagates(fused_name, fused)),
        bailing_out(any(fix_up_name, fix_up)),
    ]
}

/// All templates of this file.
pub static TABLE: LazyLock<Vec<Lowering>> =
    LazyLock::new(|| steps(&SINGLE).into_iter().chain(steps(&DOUBLE)).collect());
