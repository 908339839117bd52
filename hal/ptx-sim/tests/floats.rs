//! Floating-point arithmetic in every rounding mode, compared with the host's.

use crate::common::forms::{Operands, check, execute, operands};
use crate::common::host::compute;
use flipwave_depth::cases;
use std::cmp::Ordering;

const ROUNDINGS: [&str; 4] = ["rn", "rz", "rm", "rp"];

/// Numbers, infinities, NaNs, subnormal numbers, and neighbours of powers of two.
fn singles() -> Vec<Operands> {
    let special = [
        0,
        0x8000_0000,
        1,
        0x8000_0001,
        0x007f_ffff,
        0x0080_0000,
        0x3f80_0000,
        0xbf80_0001,
        0x3f7f_ffff,
        0x4049_0fdb,
        0x7f7f_ffff,
        0xff7f_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_1234,
        0xffa0_0001,
        0x4b00_0001,
        0x3400_0000,
    ];
    operands(&special, 400)
}

fn doubles() -> Vec<Operands> {
    let special = [
        0,
        1 << 63,
        1,
        0x000f_ffff_ffff_ffff,
        0x0010_0000_0000_0000,
        0x3ff0_0000_0000_0000,
        0xbff0_0000_0000_0001,
        0x3fef_ffff_ffff_ffff,
        0x7fef_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
        0x4330_0000_0000_0001,
        0x3cb0_0000_0000_0000,
    ];
    operands(&special, 400)
}

fn is_nan(bits: u64, precision: &str) -> bool {
    if precision == "s" {
        f32::from_bits(bits as u32).is_nan()
    } else {
        f64::from_bits(bits).is_nan()
    }
}

/// Compares an instruction with the host. NaNs of single precision are canonical.
fn compare(
    inst: &str,
    widths: &str,
    precision: &str,
    operation: &str,
    rounding: &str,
    all: &[Operands],
) {
    let expected = compute(operation, precision, rounding, all);
    for ((operands, expected), [found, _]) in
        all.iter().zip(expected).zip(execute(inst, widths, all))
    {
        if is_nan(expected, precision) {
            assert!(is_nan(found, precision), "{inst} on {operands:#x?}: {found:#x}");
            assert!(precision == "d" || found == 0x7fff_ffff, "{inst}: {found:#x}");
        } else {
            assert_eq!(found, expected, "{inst} on {operands:#x?}: {found:#x}, not {expected:#x}");
        }
    }
}

#[test]
fn arithmetic_rounds_like_the_host() {
    let names =
        [("add", 2), ("sub", 2), ("mul", 2), ("div", 2), ("fma", 3), ("rcp", 1), ("sqrt", 1)];
    let all = ROUNDINGS.iter().flat_map(|rounding| names.map(|name| (name, *rounding)));
    for ((name, count), rounding) in cases(all, 3) {
        let text = &"%x, %a, %b, %c"[..2 + 4 * count];
        let singles_widths = &"r-rrr"[..2 + count];
        let doubles_widths = &"d-ddd"[..2 + count];
        let inst = format!("{name}.{rounding}.f32 {text}");
        compare(&inst, singles_widths, "s", name, rounding, &singles());
        let inst = format!("{name}.{rounding}.f64 {text}");
        compare(&inst, doubles_widths, "d", name, rounding, &doubles());
    }
}

#[test]
fn conversions_round_like_the_host() {
    for rounding in ROUNDINGS {
        let from = |kind: &str, width: &str, operation: &str, all: &[Operands]| {
            let inst = format!("cvt.{rounding}.f32.{kind} %x, %a");
            compare(&inst, &format!("r-{width}"), "s", operation, rounding, all);
        };
        from("s32", "r", "from_s32", &singles());
        from("u64", "d", "from_u64", &doubles());
        from("f64", "d", "from_f64", &doubles());
        let inst = format!("cvt.{rounding}.f64.s64 %x, %a");
        compare(&inst, "d-d", "d", "from_s64", rounding, &doubles());
    }
}

/// Negative control: another rounding mode gives other results.
#[test]
#[should_panic(expected = "add.rz.f32")]
fn wrong_rounding_is_noticed() {
    compare("add.rz.f32 %x, %a, %b", "r-rr", "s", "add", "rn", &singles());
}

fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn flushed(value: f32) -> f32 {
    if value.is_subnormal() { 0f32.copysign(value) } else { value }
}

fn canonical(value: f32) -> u64 {
    if value.is_nan() { 0x7fff_ffff } else { value.to_bits().into() }
}

#[test]
fn subnormal_numbers_are_flushed_and_results_saturated() {
    check("add.ftz.f32 %x, %a, %b", "r-rr", &singles(), |[a, b, ..]| {
        canonical(flushed(flushed(single(a)) + flushed(single(b))))
    });
    check("mul.rn.ftz.sat.f32 %x, %a, %b", "r-rr", &singles(), |[a, b, ..]| {
        let product = flushed(flushed(single(a)) * flushed(single(b)));
        if product.is_nan() || product <= 0.0 { 0 } else { product.min(1.0).to_bits().into() }
    });
    check("fma.rn.ftz.f32 %x, %a, %b, %c", "r-rrr", &singles(), |[a, b, c, _]| {
        let [a, b, c] = [a, b, c].map(|bits| flushed(single(bits)));
        canonical(flushed(a.mul_add(b, c)))
    });
}

#[test]
fn extrema_prefer_numbers_and_order_zeroes() {
    let extremum = |a: f32, b: f32, is_max: bool| {
        let b_wins = match (a.is_nan(), b.is_nan()) {
            (true, true) => return 0x7fff_ffff,
            (a, b) if a || b => a,
            _ if a == b => a.is_sign_negative() == is_max,
            _ => (a < b) == is_max,
        };
        u64::from((if b_wins { b } else { a }).to_bits())
    };
    check("min.f32 %x, %a, %b", "r-rr", &singles(), |[a, b, ..]| {
        extremum(single(a), single(b), false)
    });
    check("max.f32 %x, %a, %b", "r-rr", &singles(), |[a, b, ..]| {
        extremum(single(a), single(b), true)
    });
    check("max.NaN.f32 %x, %a, %b", "r-rr", &singles(), |[a, b, ..]| {
        let has_nan = single(a).is_nan() || single(b).is_nan();
        if has_nan { 0x7fff_ffff } else { extremum(single(a), single(b), true) }
    });
    check("copysign.f64 %x, %a, %b", "d-dd", &doubles(), |[a, b, ..]| {
        f64::from_bits(b).copysign(f64::from_bits(a)).to_bits()
    });
}

#[test]
fn comparisons_distinguish_unordered_numbers() {
    let check_comparison = |name: &str, host: fn(f32, f32) -> bool| {
        let text = format!("setp.{name}.f32 %x, %a, %b");
        check(&text, "p-rr", &singles(), |[a, b, ..]| u64::from(host(single(a), single(b))));
    };
    check_comparison("eq", |a, b| a == b);
    check_comparison("ne", |a, b| a.partial_cmp(&b).is_some_and(Ordering::is_ne));
    check_comparison("lt", |a, b| a < b);
    check_comparison("geu", |a, b| a.partial_cmp(&b).is_none_or(Ordering::is_ge));
    check_comparison("equ", |a, b| a.partial_cmp(&b).is_none_or(Ordering::is_eq));
    check_comparison("neu", |a, b| a != b);
    check_comparison("num", |a, b| !a.is_nan() && !b.is_nan());
    check_comparison("nan", |a, b| a.is_nan() || b.is_nan());
    let property = |name: &str, host: fn(f32) -> bool| {
        let text = format!("testp.{name}.f32 %x, %a");
        check(&text, "p-r", &singles(), |[a, ..]| u64::from(host(single(a))));
    };
    property("finite", f32::is_finite);
    property("infinite", f32::is_infinite);
    property("notanumber", f32::is_nan);
    property("normal", f32::is_normal);
    property("subnormal", f32::is_subnormal);
}

#[test]
fn numbers_become_integers() {
    // A cast of Rust saturates, and makes a NaN zero.
    check(
        "cvt.rzi.s32.f32 %x, %a",
        "r-r",
        &singles(),
        |[a, ..]| u64::from(single(a) as i32 as u32),
    );
    check("cvt.rni.u32.f32 %x, %a", "r-r", &singles(), |[a, ..]| {
        u64::from(single(a).round_ties_even() as u32)
    });
    check("cvt.rmi.s64.f32 %x, %a", "d-r", &singles(), |[a, ..]| match single(a) {
        a if a.is_nan() => 1 << 63,
        a => a.floor() as i64 as u64,
    });
    check("cvt.rpi.u8.f32 %x, %a", "h-r", &singles(), |[a, ..]| u64::from(single(a).ceil() as u8));
    check("cvt.rzi.s32.f64 %x, %a", "r-d", &doubles(), |[a, ..]| match f64::from_bits(a) {
        a if a.is_nan() => 0x8000_0000,
        a => u64::from(a as i32 as u32),
    });
    check("cvt.rpi.f32.f32 %x, %a", "r-r", &singles(), |[a, ..]| canonical(single(a).ceil()));
    check("cvt.rni.f64.f64 %x, %a", "d-d", &doubles(), |[a, ..]| {
        let rounded = f64::from_bits(a).round_ties_even().to_bits();
        if f64::from_bits(a).is_nan() { a | 1 << 51 } else { rounded }
    });
    check("cvt.sat.f32.f32 %x, %a", "r-r", &singles(), |[a, ..]| match single(a) {
        a if a.is_nan() || a <= 0.0 => 0,
        a => a.min(1.0).to_bits().into(),
    });
}

#[test]
fn integers_are_extended_and_saturated() {
    check("cvt.s64.s32 %x, %a", "d-r", &singles(), |[a, ..]| i64::from(a as i32) as u64);
    check("cvt.u32.s8 %x, %a", "r-r", &singles(), |[a, ..]| u64::from(a as i8 as u32));
    check("cvt.sat.u8.s32 %x, %a", "h-r", &singles(), |[a, ..]| {
        u64::from((a as i32).clamp(0, 255) as u16)
    });
    check("cvt.sat.s16.u64 %x, %a", "h-d", &doubles(), |[a, ..]| a.min(0x7fff));
    check("cvt.s32.s16 %x, %a", "r-h", &singles(), |[a, ..]| u64::from(i32::from(a as i16) as u32));
    check("cvt.pack.sat.s16.s32 %x, %a, %b", "r-rr", &singles(), |[a, b, ..]| {
        let part = |value: u64| u64::from((value as i32).clamp(-0x8000, 0x7fff) as u16);
        part(a) << 16 | part(b)
    });
}
