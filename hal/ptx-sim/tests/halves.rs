//! Arithmetic on 16-bit floating-point numbers, compared with the crate `half` and with double precision.

use crate::common::forms::{Operands, Random, check};
use half::{bf16, f16};

fn halves() -> Vec<Operands> {
    let special = [
        0, 0x8000, 1, 0x83ff, 0x0400, 0x3c00, 0xbc01, 0x7bff, 0x7c00, 0xfc00, 0x7e01, 0x3555,
        0x7f80, 0x3f80, 0x0080, 0x7f7f,
    ];
    let mut all: Vec<Operands> = Vec::new();
    let mut random = Random(3);
    for a in special {
        for b in special {
            all.push([a | b << 16, b | a << 16, special[all.len() % 16], random.next() & 0xffff]);
        }
    }
    all.extend((0..500).map(|_| [0; 4].map(|_: u64| random.next() & 0xffff_ffff)));
    all
}

fn canonical(bits: u16, is_nan: bool) -> u64 {
    if is_nan { 0x7fff } else { bits.into() }
}

fn of_f16(value: f64) -> u64 {
    canonical(f16::from_f64(value).to_bits(), value.is_nan())
}

fn of_bf16(value: f64) -> u64 {
    canonical(bf16::from_f64(value).to_bits(), value.is_nan())
}

/// Sums and products of halves are exact in double precision, so that rounding them once is correct.
#[test]
fn sums_and_products_of_halves_are_rounded_once() {
    let half = |bits: u64| f16::from_bits(bits as u16).to_f64();
    let brain = |bits: u64| bf16::from_bits(bits as u16).to_f64();
    check("add.f16 %x, %a, %b", "h-hh", &halves(), |[a, b, ..]| of_f16(half(a) + half(b)));
    check("sub.rn.f16 %x, %a, %b", "h-hh", &halves(), |[a, b, ..]| of_f16(half(a) - half(b)));
    check("mul.f16 %x, %a, %b", "h-hh", &halves(), |[a, b, ..]| of_f16(half(a) * half(b)));
    check("mul.bf16 %x, %a, %b", "h-hh", &halves(), |[a, b, ..]| of_bf16(brain(a) * brain(b)));
    check("mul.f16x2 %x, %a, %b", "r-rr", &halves(), |[a, b, ..]| {
        of_f16(half(a) * half(b)) | of_f16(half(a >> 16) * half(b >> 16)) << 16
    });
    check("fma.rn.relu.f16 %x, %a, %b, %c", "h-hhh", &small(), |[a, b, c, _]| {
        let value = half(a) * half(b) + half(c);
        if value < 0.0 { 0 } else { of_f16(value) }
    });
    check("neg.f16x2 %x, %a", "r-r", &halves(), |[a, ..]| a & 0xffff_ffff ^ 0x8000_8000);
}

/// Numbers from 1/16 to 16: a product and a sum of them is exact in double precision.
fn small() -> Vec<Operands> {
    let mut random = Random(5);
    let mut number = || (0x2c00 + (random.next() & 0x1fff)) | random.next() & 0x8000;
    (0..500).map(|_| [0; 4].map(|_: u64| number())).collect()
}

#[test]
fn halves_are_converted() {
    check("cvt.f32.f16 %x, %a", "r-h", &halves(), |[a, ..]| {
        let value = f16::from_bits(a as u16);
        if value.is_nan() { 0x7fff_ffff } else { value.to_f32().to_bits().into() }
    });
    check("cvt.rn.f16.f32 %x, %a", "h-r", &wide(), |[a, ..]| {
        of_f16(f32::from_bits(a as u32).into())
    });
    check("cvt.rn.bf16.f32 %x, %a", "h-r", &wide(), |[a, ..]| {
        of_bf16(f32::from_bits(a as u32).into())
    });
    check("cvt.rz.bf16.f32 %x, %a", "h-r", &wide(), |[a, ..]| {
        let value = f32::from_bits(a as u32);
        canonical((a >> 16) as u16, value.is_nan())
    });
    check("cvt.rn.f16x2.f32 %x, %a, %b", "r-rr", &wide(), |[a, b, ..]| {
        let [high, low] = [a, b].map(|bits| of_f16(f32::from_bits(bits as u32).into()));
        high << 16 | low
    });
    check("cvt.rna.tf32.f32 %x, %a", "r-r", &wide(), |[a, ..]| {
        let value = f32::from_bits(a as u32);
        match value {
            value if value.is_nan() => 0x7fff_ffff,
            value if value.is_infinite() => a,
            _ => (a + 0x1000) & !0x1fff,
        }
    });
    check("cvt.rn.f16.s32 %x, %a", "h-r", &wide(), |[a, ..]| of_f16(f64::from(a as i32)));
}

fn wide() -> Vec<Operands> {
    let special = [
        0u64,
        0x8000_0000,
        1,
        0x387f_ffff,
        0x3300_0001,
        0x477f_efff,
        0x477f_f000,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0001,
        0x3f80_1000,
        0x3f80_3000,
        0x7f7f_ffff,
    ];
    let mut random = Random(9);
    let near_halves = (0..400).map(|_| 0x3200_0000 + random.next() % 0x1600_0000);
    let mut all: Vec<u64> = special.into_iter().chain(near_halves).collect();
    let mut random = Random(10);
    all.extend((0..400).map(|_| random.next() & 0xffff_ffff));
    let count = all.len();
    (0..count).map(|number| [all[number], all[(number * 7 + 3) % count], 0, 0]).collect()
}

/// Values of all numbers of 8 bits, from their definition.
fn eighth(bits: u64, exponent_bits: i32) -> f64 {
    let fraction_bits = 7 - exponent_bits;
    let exponent = (bits >> fraction_bits & ((1 << exponent_bits) - 1)) as i32;
    let fraction = (bits & ((1 << fraction_bits) - 1)) as f64 / f64::from(1 << fraction_bits);
    let bias = (1 << (exponent_bits - 1)) - 1;
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(1 - bias),
        31 if exponent_bits == 5 => {
            if fraction == 0.0 {
                f64::INFINITY
            } else {
                f64::NAN
            }
        }
        15 if exponent_bits == 4 && bits & 7 == 7 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - bias),
    };
    if bits & 0x80 != 0 { -magnitude } else { magnitude }
}

#[test]
fn numbers_of_eight_bits_are_converted() {
    for (name, exponent_bits) in [("e4m3x2", 4), ("e5m2x2", 5)] {
        let all: Vec<Operands> = (0..256).map(|bits| [bits | (255 - bits) << 8, 0, 0, 0]).collect();
        check(&format!("cvt.rn.f16x2.{name} %x, %a"), "r-h", &all, |[a, ..]| {
            of_f16(eighth(a & 0xff, exponent_bits))
                | of_f16(eighth(a >> 8 & 0xff, exponent_bits)) << 16
        });
        // The nearest finite value; ties go to even fractions.
        let nearest = |value: f32| {
            if value.is_nan() {
                return 0x7f;
            }
            let finite = (0..128u64).filter(|bits| eighth(*bits, exponent_bits).is_finite());
            let distance =
                |bits: &u64| (eighth(*bits, exponent_bits) - f64::from(value.abs().min(1e6))).abs();
            let best = finite
                .min_by(|a, b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1))));
            best.expect("a number") | u64::from(value.is_sign_negative()) << 7
        };
        check(&format!("cvt.rn.satfinite.{name}.f32 %x, %a, %b"), "h-rr", &wide(), |[a, b, ..]| {
            let [high, low] = [a, b].map(|bits| nearest(f32::from_bits(bits as u32)));
            high << 8 | low
        });
        check(&format!("cvt.rn.satfinite.{name}.f16x2 %x, %a"), "h-r", &halves(), |[a, ..]| {
            let part = |bits: u64| nearest(f16::from_bits(bits as u16).to_f32());
            part(a >> 16) << 8 | part(a)
        });
    }
}

#[test]
fn halves_are_compared_in_pairs() {
    check("setp.lt.f16x2 %x|%y, %a, %b", "pprr", &halves(), |[a, b, ..]| {
        u64::from(f16::from_bits(a as u16) < f16::from_bits(b as u16))
    });
    check("set.ge.f16x2.f16x2 %x, %a, %b", "r-rr", &halves(), |[a, b, ..]| {
        let one = |shift: u32| {
            let [a, b] = [a, b].map(|pair| f16::from_bits((pair >> shift) as u16));
            if a >= b { 0x3c00 << shift } else { 0 }
        };
        one(0) | one(16)
    });
}

/// Approximations lie within the errors of the manual.
#[test]
fn approximations_are_within_their_errors() {
    let inputs: Vec<Operands> =
        (1..2000).map(|n| [(n as f32 / 100.0).to_bits().into(), 0, 0, 0]).collect();
    let near = |inst: &str, host: fn(f64) -> f64, relative: f64| {
        let found = crate::common::forms::execute(inst, "r-r", &inputs);
        for ([a, ..], [found, _]) in inputs.iter().zip(found) {
            let (value, exact) =
                (f32::from_bits(found as u32), host(f32::from_bits(*a as u32).into()));
            let error = (f64::from(value) - exact).abs();
            assert!(error <= relative * exact.abs().max(1e-2), "{inst} {a:#x}: {value} {exact}");
        }
    };
    near("rcp.approx.ftz.f32 %x, %a", |a| 1.0 / a, 2f64.powi(-23));
    near("sqrt.approx.f32 %x, %a", f64::sqrt, 2f64.powi(-23));
    near("rsqrt.approx.f32 %x, %a", |a| 1.0 / a.sqrt(), 2f64.powf(-22.9));
    near("sin.approx.f32 %x, %a", f64::sin, 2f64.powf(-20.5));
    near("cos.approx.f32 %x, %a", f64::cos, 2f64.powf(-20.5));
    near("lg2.approx.f32 %x, %a", f64::log2, 2f64.powi(-22));
    near("ex2.approx.f32 %x, %a", f64::exp2, 2f64.powi(-22));
    near("tanh.approx.f32 %x, %a", f64::tanh, 2f64.powi(-11));
    // Exceptional values, from the tables of the manual.
    let value = |inst: &str, bits: u32| {
        crate::common::forms::execute(inst, "r-r", &[[bits.into(), 0, 0, 0]])[0][0] as u32
    };
    let infinity = f32::INFINITY.to_bits();
    assert_eq!(value("rcp.approx.f32 %x, %a", 0x8000_0000), f32::NEG_INFINITY.to_bits());
    assert_eq!(value("rsqrt.approx.f32 %x, %a", infinity), 0);
    assert_eq!(value("sqrt.approx.f32 %x, %a", (-1f32).to_bits()), 0x7fff_ffff);
    assert_eq!(value("lg2.approx.f32 %x, %a", 0), f32::NEG_INFINITY.to_bits());
    assert_eq!(value("ex2.approx.f32 %x, %a", f32::NEG_INFINITY.to_bits()), 0);
    assert_eq!(value("sin.approx.f32 %x, %a", infinity), 0x7fff_ffff);
    assert_eq!(value("sin.approx.f32 %x, %a", 0x8000_0000), 0x8000_0000);
}
