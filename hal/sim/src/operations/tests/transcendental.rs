//! Transcendental operations against the host's mathematical library.

use super::exact::{DOUBLE, Format, HALF, SINGLE, rounded_sum};
use super::{DEFAULT_MODE, LANES, Random, Sources, all_halves, edges, levels, operation, run};
use crate::lane_value::Kind;
use half::f16;
use std::f64::consts::TAU;

type Function = fn(f64) -> f64;

fn sine(turns: f64) -> f64 {
    if turns.is_finite() && turns.abs() > 256.0 { 0.0 } else { (turns % 1.0 * TAU).sin() }
}

fn cosine(turns: f64) -> f64 {
    if turns.is_finite() && turns.abs() > 256.0 { 1.0 } else { (turns % 1.0 * TAU).cos() }
}

const FUNCTIONS: [(&str, Function); 7] = [
    ("rcp", |x| 1.0 / x),
    ("rsq", |x| 1.0 / x.sqrt()),
    ("sqrt", f64::sqrt),
    ("exp", f64::exp2),
    ("log", f64::log2),
    ("sin", sine),
    ("cos", cosine),
];

fn from_double(format: Format, value: f64) -> u64 {
    if value.is_infinite() {
        return format.infinity() | if value < 0.0 { format.sign() } else { 0 };
    }
    rounded_sum(format, &[DOUBLE.term(value.to_bits())])
}

fn to_double(format: Format, bits: u64) -> f64 {
    if format == SINGLE {
        f32::from_bits(bits as u32).into()
    } else {
        f16::from_bits(bits as u16).to_f64()
    }
}

/// Units in the last place between two numbers.
fn distance(format: Format, a: u64, b: u64) -> u64 {
    let place = |bits: u64| {
        let magnitude = (bits & !format.sign()) as i64;
        if format.is_negative(bits) { -magnitude } else { magnitude }
    };
    place(a).abs_diff(place(b))
}

fn within_one_unit(name: &str, format: Format, samples: &[Sources], function: Function) {
    let flush = |bits| if format == SINGLE { format.flush(bits) } else { bits };
    for chunk in samples.chunks(LANES) {
        let mut lanes = [[0; 4]; LANES];
        lanes[..chunk.len()].copy_from_slice(chunk);
        let outcomes =
            levels().into_iter().map(|level| run(operation(name), level, DEFAULT_MODE, &lanes));
        let outcomes: Vec<_> = outcomes.collect();
        assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]), "{name}: levels differ");
        for (sources, outcome) in chunk.iter().zip(outcomes[0]) {
            let source = sources[0];
            let value = to_double(format, flush(source));
            let exact = function(value);
            let got = outcome.value;
            if format.is_nan(source) {
                assert_eq!(got, source | format.quiet_bit(), "{name} {source:#x}");
            } else if exact.is_nan() {
                assert_eq!(got, format.default_nan(), "{name} {source:#x}");
            } else {
                let expected = flush(from_double(format, exact));
                // Near zeros of sine and cosine the host's reduced argument is inexact.
                let near_zero = name.contains("_sin") || name.contains("_cos");
                let close = near_zero && (to_double(format, got) - exact).abs() < 1e-15;
                assert!(
                    close || distance(format, got, expected) <= 1,
                    "{name} {source:#x}: {got:#x}, not {expected:#x}"
                );
            }
        }
    }
}

#[test]
fn single_precision() {
    let mut random = Random(3);
    let mut samples: Vec<Sources> =
        edges(Kind::F32).into_iter().map(|bits| [bits, 0, 0, 0]).collect();
    for _ in 0..20_000 {
        let bits = random.next();
        // Any bits, and numbers of moderate size.
        let moderate = ((bits >> 32) as i32 as f32 / 16_777_216.0).to_bits();
        samples.push([bits & 0xffff_ffff, 0, 0, 0]);
        samples.push([moderate.into(), 0, 0, 0]);
    }
    for (name, function) in FUNCTIONS {
        within_one_unit(&format!("v_{name}_f32"), SINGLE, &samples, function);
    }
    within_one_unit("v_rcp_iflag_f32", SINGLE, &samples, |x| 1.0 / x);
    within_one_unit("v_exp_legacy_f32", SINGLE, &samples, f64::exp2);
    within_one_unit("v_log_legacy_f32", SINGLE, &samples, f64::log2);
}

#[test]
fn half_precision() {
    for (name, function) in FUNCTIONS {
        within_one_unit(&format!("v_{name}_f16"), HALF, &all_halves(), function);
    }
}

#[test]
fn exact_points() {
    let value = |name: &str, source: f32| {
        let lanes = [[source.to_bits().into(), 0, 0, 0]; LANES];
        let outcome = run(operation(name), levels()[0], DEFAULT_MODE, &lanes)[0];
        f32::from_bits(outcome.value as u32)
    };
    for quarter in -8..=8i32 {
        let turns = quarter as f32 / 4.0;
        let sine = [0.0, 1.0, 0.0, -1.0][quarter.rem_euclid(4) as usize];
        let cosine = [1.0, 0.0, -1.0, 0.0][quarter.rem_euclid(4) as usize];
        assert_eq!(value("v_sin_f32", turns), sine, "{turns}");
        assert_eq!(value("v_cos_f32", turns), cosine, "{turns}");
    }
    for exponent in -126..=127 {
        let power = f32::from_bits(((exponent + 127) as u32) << 23);
        assert_eq!(value("v_exp_f32", exponent as f32), power);
        assert_eq!(value("v_log_f32", power), exponent as f32);
    }
    assert_eq!(value("v_exp_f32", -127.0), 0.0);
    assert_eq!(value("v_log_f32", f32::from_bits(1)), f32::NEG_INFINITY);
    assert_eq!(value("v_rcp_f32", f32::from_bits(1)), f32::INFINITY);
    assert_eq!(value("v_sin_f32", 300.5), 0.0);
    assert_eq!(value("v_cos_f32", 300.5), 1.0);
}

#[test]
fn double_precision() {
    let mut random = Random(9);
    let mut samples: Vec<u64> = edges(Kind::F64);
    samples.extend((0..4000).map(|_| random.next()));
    let functions: [(&str, Function); 3] =
        [("v_rcp_f64", |x| 1.0 / x), ("v_rsq_f64", |x| 1.0 / x.sqrt()), ("v_sqrt_f64", f64::sqrt)];
    for (name, function) in functions {
        super::check(
            name,
            DEFAULT_MODE,
            &samples.iter().map(|bits| [*bits, 0, 0, 0]).collect::<Vec<_>>(),
            |s| {
                let value = f64::from_bits(s[0]);
                let exact = function(value);
                if value.is_nan() {
                    s[0] | DOUBLE.quiet_bit()
                } else if exact.is_nan() {
                    DOUBLE.default_nan()
                } else {
                    exact.to_bits()
                }
            },
        );
    }
}
