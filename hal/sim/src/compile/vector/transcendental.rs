//! Reciprocals, roots, exponentials, logarithms, sines and cosines. The interpreter's
//! implementation documents the algorithms, and defines the coefficients of the polynomials.

use super::lowering::{Lowering, half, propagates};
use crate::execute::operations::elementary::{
    COSINE, EXPONENTIAL, GREATEST_EXPONENT, LOGARITHM, SINE, WHOLE,
};
use crate::execute::operations::transcendental::GREATEST_FRACTIONAL;
use std::f64::consts::{FRAC_1_SQRT_2, TAU};
use std::fmt::Write;
use std::sync::LazyLock;

/// A double-precision number in all lanes.
fn double(value: f64) -> String {
    format!("splat (double {:#018X})", value.to_bits()).replace("0X", "0x")
}

/// Replacement of denormal numbers by zeros of their sign.
fn flushed(value: &str, result: &str) -> String {
    format!(
        "{result}.bits = bitcast F {value} to W\n\
         {result}.exponent = and W {result}.bits, #2139095040\n\
         {result}.small = icmp eq W {result}.exponent, zeroinitializer\n\
         {result}.sign = and W {result}.bits, #-2147483648\n\
         {result}.word = select M {result}.small, W {result}.sign, W {result}.bits\n\
         {result} = bitcast W {result}.word to F\n"
    )
}

/// A single-precision function computed in double precision, from `%w` to `%v`, and rounded once;
/// denormals count as zeros.
fn single(code: &str) -> String {
    let [before, after] = [flushed("%a", "%x"), flushed("%y", "%r")];
    format!("{before}%w = fpext F %x to E\n{code}%y = fptrunc E %v to F\n{after}")
}

/// A single-precision function computed in double precision, from `%w` to `%v`, and rounded once,
/// with denormals.
fn with_denormals(code: &str) -> String {
    format!("%w = fpext F %a to E\n{code}%r = fptrunc E %v to F\n")
}

/// A half-precision function computed in double precision. The last place of single precision is
/// set if more digits follow, so that the last rounding sees all.
fn with_halves(code: &str) -> String {
    format!(
        "%w = fpext F %a to E\n{code}%v.bits = bitcast E %v to D\n\
         %v.below = and D %v.bits, splat (i64 536870911)\n\
         %v.more = icmp ne D %v.below, zeroinitializer\n\
         %v.last = select M %v.more, D splat (i64 536870912), D zeroinitializer\n\
         %v.above = and D %v.bits, splat (i64 -536870912)\n%v.odd = or D %v.above, %v.last\n\
         %v.cut = bitcast D %v.odd to E\n%r = fptrunc E %v.cut to F\n"
    )
}

/// Polynomial of `x` with these coefficients, from that of the power of zero on.
fn polynomial(x: &str, coefficients: &[f64], result: &str) -> String {
    let mut code = String::new();
    let mut sum = coefficients.last().map_or(double(0.0), |last| double(*last));
    for (index, coefficient) in coefficients.iter().enumerate().rev().skip(1) {
        let next = if index == 0 { result.to_owned() } else { format!("{result}.{index}") };
        let factor = double(*coefficient);
        let _ = writeln!(code, "{result}.by.{index} = fmul E {sum}, {x}");
        let _ = writeln!(code, "{next} = fadd E {result}.by.{index}, {factor}");
        sum = next;
    }
    code
}

const RECIPROCAL: &str = "%v = fdiv E splat (double 1.0), %w\n";
const ROOT: &str = "%v = call E @llvm.sqrt.E(E %w)\n";
const RECIPROCAL_ROOT: &str =
    "%root = call E @llvm.sqrt.E(E %w)\n%v = fdiv E splat (double 1.0), %root\n";

/// One Newton step on the quotient of two rounded operations.
const RECIPROCAL_ROOT_OF_DOUBLE: &str = "%own = call E @llvm.sqrt.E(E %a)\n\
     %root = fdiv E splat (double 1.0), %own\n%product = fmul E %a, %root\n\
     %minus = fneg E %product\n%lost = call E @llvm.fma.E(E %a, E %root, E %minus)\n\
     %less = call E @llvm.fma.E(E %minus, E %root, E splat (double 1.0))\n\
     %part = fmul E %lost, %root\n%error = fsub E %less, %part\n\
     %half = fmul E %error, splat (double 0.5)\n\
     %better = call E @llvm.fma.E(E %half, E %root, E %root)\n\
     %size = call E @llvm.fabs.E(E %better)\n\
     %finite = fcmp olt E %size, splat (double 0x7FF0000000000000)\n\
     %r = select M %finite, E %better, E %root";

fn power() -> String {
    let (least, greatest) = (double(-GREATEST_EXPONENT), double(GREATEST_EXPONENT));
    let whole = double(WHOLE);
    format!(
        "%low = fcmp olt E %w, {least}\n%w.1 = select M %low, E {least}, E %w\n\
         %high = fcmp ogt E %w, {greatest}\n%w.2 = select M %high, E {greatest}, E %w.1\n\
         %shifted = fadd E %w.2, {whole}\n%near = fsub E %shifted, {whole}\n\
         %rest = fsub E %w.2, %near\n{}%bits = bitcast E %shifted to D\n\
         %biased = add D %bits, splat (i64 1023)\n%exponent = shl D %biased, splat (i64 52)\n\
         %scale = bitcast D %exponent to E\n%v = fmul E %power, %scale\n",
        polynomial("%rest", &EXPONENTIAL, "%power")
    )
}

fn logarithm() -> String {
    let (least, whole) = (FRAC_1_SQRT_2.to_bits(), WHOLE.to_bits());
    let (shift, more, turn) = (double(WHOLE), double(2048.0), double(4096.0));
    let one = double(1.0);
    format!(
        "%bits = bitcast E %w to D\n%over = sub D %bits, splat (i64 {least})\n\
         %exponent = and D %over, splat (i64 {})\n%rest.bits = sub D %bits, %exponent\n\
         %rest = bitcast D %rest.bits to E\n%less = fsub E %rest, {one}\n\
         %sum = fadd E %rest, {one}\n%s = fdiv E %less, %sum\n%s.2 = fmul E %s, %s\n{}\
         %number = lshr D %exponent, splat (i64 52)\n%whole.bits = add D %number, splat (i64 {whole})\n\
         %whole.1 = bitcast D %whole.bits to E\n%whole.2 = fsub E %whole.1, {shift}\n\
         %turned = fsub E %whole.2, {turn}\n%is.over = fcmp ogt E %whole.2, {more}\n\
         %whole = select M %is.over, E %turned, E %whole.2\n%part = fmul E %s, %series\n\
         %log = fadd E %whole, %part\n\
         %finite = fcmp olt E %w, splat (double 0x7FF0000000000000)\n\
         %v.1 = select M %finite, E %log, E %w\n%minus = fcmp olt E %w, zeroinitializer\n\
         %v.2 = select M %minus, E splat (double 0x7FF8000000000000), E %v.1\n\
         %zero = fcmp oeq E %w, zeroinitializer\n\
         %v = select M %zero, E splat (double 0xFFF0000000000000), E %v.2\n",
        (0xfff_i64 << 52),
        polynomial("%s.2", &LOGARITHM, "%series")
    )
}

/// Sine (`%sin`) and cosine (`%cos`) of the difference between an angle in turns and its nearest
/// quarter turn, number `%quarter`.
fn quarters() -> String {
    format!(
        "%near = call E @llvm.roundeven.E(E %w)\n%turn = fsub E %w, %near\n\
         %four = fmul E %turn, {}\n%quarters = call E @llvm.roundeven.E(E %four)\n\
         %quarter = call W @llvm.fptosi.sat.W.E(E %quarters)\n\
         %done = fmul E %quarters, {}\n%left = fsub E %turn, %done\n\
         %angle = fmul E %left, {}\n%angle.2 = fmul E %angle, %angle\n{}\
         %sin = fmul E %angle, %sine\n{}",
        double(4.0),
        double(0.25),
        double(TAU),
        polynomial("%angle.2", &SINE, "%sine"),
        polynomial("%angle.2", &COSINE, "%cos")
    )
}

fn sine() -> String {
    format!(
        "{}%is.odd = trunc W %quarter to M\n%any = select M %is.odd, E %cos, E %sin\n\
         %other = fneg E %any\n%two = and W %quarter, #2\n\
         %is.other = icmp ne W %two, zeroinitializer\n\
         %signed = select M %is.other, E %other, E %any\n\
         %is.zero = fcmp oeq E %signed, zeroinitializer\n\
         %zero = call E @llvm.copysign.E(E zeroinitializer, E %w)\n\
         %v.1 = select M %is.zero, E %zero, E %signed\n%size = call E @llvm.fabs.E(E %w)\n\
         %far = fcmp ogt E %size, {}\n\
         %finite = fcmp olt E %size, splat (double 0x7FF0000000000000)\n\
         %none = and M %far, %finite\n%v = select M %none, E zeroinitializer, E %v.1\n",
        quarters(),
        double(GREATEST_FRACTIONAL)
    )
}

fn cosine() -> String {
    format!(
        "{}%is.odd = trunc W %quarter to M\n%any = select M %is.odd, E %sin, E %cos\n\
         %other = fneg E %any\n%next = add W %quarter, #1\n%two = and W %next, #2\n\
         %is.other = icmp ne W %two, zeroinitializer\n\
         %signed = select M %is.other, E %other, E %any\n%v = fadd E %signed, zeroinitializer\n",
        quarters()
    )
}

fn table() -> Vec<Lowering> {
    let [power, logarithm, sine, cosine] = [power(), logarithm(), sine(), cosine()];
    let row = |name, code: String| propagates(name, code.leak());
    vec![
        row("v_rcp_f32", single(RECIPROCAL)),
        row("v_rcp_iflag_f32", single(RECIPROCAL)),
        row("v_sqrt_f32", single(ROOT)),
        row("v_rsq_f32", single(RECIPROCAL_ROOT)),
        row("v_exp_f32", single(&power)),
        row("v_log_f32", single(&logarithm)),
        row("v_sin_f32", with_denormals(&sine)),
        row("v_cos_f32", with_denormals(&cosine)),
        half(propagates("v_rcp_f16", "%r = fdiv F splat (float 1.0), %a")),
        half(propagates("v_sqrt_f16", "%r = call F @llvm.sqrt.F(F %a)")),
        half(row("v_rsq_f16", with_halves(RECIPROCAL_ROOT))),
        half(row("v_exp_f16", with_halves(&power))),
        half(row("v_log_f16", with_halves(&logarithm))),
        half(row("v_sin_f16", with_halves(&sine))),
        half(row("v_cos_f16", with_halves(&cosine))),
        propagates("v_rcp_f64", "%r = fdiv E splat (double 1.0), %a"),
        propagates("v_sqrt_f64", "%r = call E @llvm.sqrt.E(E %a)"),
        propagates("v_rsq_f64", RECIPROCAL_ROOT_OF_DOUBLE),
    ]
}

/// All templates of this file.
pub static TABLE: LazyLock<Vec<Lowering>> = LazyLock::new(table);
