//! Transcendental operations, checked against the host's mathematical library (2^29 times as
//! precise as single precision), against exact inequalities in double precision, and against the
//! examples of the ISA manual.

use super::exact::{DOUBLE, Format, HALF, Rule, SINGLE, Term};
use super::{
    DEFAULT_MODE, LANES, MODES, Random, Sources, check, control, edges, flushed_if, flushes,
    levels, operation, run,
};
use crate::execute::lane::Kind;
use crate::wave::Mode;
use half::f16;
use std::f64::consts::TAU;

type Function = fn(f64) -> f64;

/// Converts a small angle from turns to radians.
fn radians(turns: f64) -> f64 {
    (turns - turns.round()) * TAU
}

fn sine(turns: f64) -> f64 {
    let sine = radians(turns).sin();
    // At zeros of the sine, the host's argument is inexact.
    if turns * 2.0 % 1.0 == 0.0 { 0f64.copysign(turns) } else { sine }
}

fn cosine(turns: f64) -> f64 {
    if (turns * 4.0 % 2.0).abs() == 1.0 { 0.0 } else { radians(turns).cos() }
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
    Rule::nearest(format).rounded(&[DOUBLE.term(value.to_bits())])
}

fn to_double(format: Format, bits: u64) -> f64 {
    if format == SINGLE {
        f32::from_bits(bits as u32).into()
    } else {
        f16::from_bits(bits as u16).to_f64()
    }
}

/// Returns the distance of two numbers in units in the last place.
fn distance(format: Format, a: u64, b: u64) -> u64 {
    let place = |bits: u64| {
        let magnitude = (bits & !format.sign()) as i64;
        if format.is_negative(bits) { -magnitude } else { magnitude }
    };
    place(a).abs_diff(place(b))
}

/// Returns `true` if an operation flushes single-precision denormals in every mode.
fn never_denormal(name: &str) -> bool {
    name.ends_with("_f32") && !name.contains("_sin") && !name.contains("_cos")
}

fn within_one_unit(
    name: &str,
    format: Format,
    mode: Mode,
    samples: impl Iterator<Item = u64>,
    function: Function,
) {
    let operation = operation(name);
    if control::records() {
        return;
    }
    let accuracy = operation.numerics.accuracy.expect("a bound");
    let [by_mode_in, by_mode_out] = flushes(format, mode);
    let never = never_denormal(name);
    let mut samples = samples.peekable();
    while samples.peek().is_some() {
        let mut lanes = [[0; 4]; LANES];
        lanes.iter_mut().zip(samples.by_ref()).for_each(|(lane, bits)| lane[0] = bits);
        let outcomes: Vec<_> =
            levels().into_iter().map(|level| run(operation, level, mode, &lanes)).collect();
        assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]), "{name}: levels differ");
        for (sources, outcome) in lanes.iter().zip(outcomes[0]) {
            let source = flushed_if(never || by_mode_in, format, sources[0]);
            let exact = function(to_double(format, source));
            let got = outcome.value;
            let units = if format.is_nan(source) {
                u64::from(got != source | format.quiet_bit()) << 63
            } else if exact.is_nan() {
                u64::from(got != format.sign() | format.default_nan()) << 63
            } else {
                let rounded = from_double(format, exact);
                let greatest = format.infinity() - 1;
                let clamps = format == HALF && mode.0 & Mode::FP16_OVERFLOW != 0;
                let expected = if clamps && format.is_infinite(rounded) && exact.is_finite() {
                    rounded & format.sign() | greatest
                } else {
                    flushed_if(never || by_mode_out, format, rounded)
                };
                distance(format, got, expected)
            };
            assert!(
                units <= accuracy.ulps.into(),
                "{name} {:#x} of {source:#x} is {got:#x}, not {exact:e}: {units}",
                mode.0
            );
        }
    }
}

const SINGLES: [(&str, Function); 10] = [
    ("v_rcp_f32", |x| 1.0 / x),
    ("v_rcp_iflag_f32", |x| 1.0 / x),
    ("v_rsq_f32", |x| 1.0 / x.sqrt()),
    ("v_sqrt_f32", f64::sqrt),
    ("v_exp_f32", f64::exp2),
    ("v_exp_legacy_f32", f64::exp2),
    ("v_log_f32", f64::log2),
    ("v_log_legacy_f32", f64::log2),
    ("v_sin_f32", sine),
    ("v_cos_f32", cosine),
];

#[test]
pub fn single_precision_is_within_one_unit() {
    let mut random = Random(3);
    let mut samples = edges(Kind::F32);
    for _ in 0..60_000 {
        let bits = random.next();
        // Arbitrary bits, and numbers of moderate size.
        let moderate = ((bits >> 32) as i32 as f32 / 16_777_216.0).to_bits();
        samples.push(bits & 0xffff_ffff);
        samples.push(moderate.into());
    }
    for (name, function) in SINGLES {
        within_one_unit(name, SINGLE, DEFAULT_MODE, samples.iter().copied(), function);
        for mode in &MODES[1..] {
            let some = samples.iter().copied().take(3000);
            within_one_unit(name, SINGLE, *mode, some, function);
        }
    }
}

#[test]
#[ignore = "long: 70 million numbers for each of ten operations"]
fn single_precision_at_every_61st_number() {
    for (name, function) in SINGLES {
        let samples = (0..=u64::from(u32::MAX)).step_by(61);
        within_one_unit(name, SINGLE, DEFAULT_MODE, samples, function);
    }
}

#[test]
pub fn half_precision_is_within_one_unit() {
    for (name, function) in FUNCTIONS {
        for mode in MODES {
            within_one_unit(&format!("v_{name}_f16"), HALF, mode, 0..0x1_0000, function);
        }
    }
}

/// Functional examples of the ISA manual: source and result.
#[test]
fn results_match_the_manual_examples() {
    let examples: [(&str, &[(u64, u64)]); 14] = [
        ("v_exp_f32", &[(0xff80_0000, 0), (0x8000_0000, 0x3f80_0000), (0x7f80_0000, 0x7f80_0000)]),
        (
            "v_log_f32",
            &[
                (0xff80_0000, 0xffc0_0000),
                (0xbf80_0000, 0xffc0_0000),
                (0x8000_0000, 0xff80_0000),
                (0, 0xff80_0000),
                (0x3f80_0000, 0),
                (0x7f80_0000, 0x7f80_0000),
            ],
        ),
        (
            "v_rcp_f32",
            &[
                (0xff80_0000, 0x8000_0000),
                (0xc000_0000, 0xbf00_0000),
                (0x8000_0000, 0xff80_0000),
                (0, 0x7f80_0000),
                (0x7f80_0000, 0),
            ],
        ),
        (
            "v_rsq_f32",
            &[
                (0xff80_0000, 0xffc0_0000),
                (0x8000_0000, 0xff80_0000),
                (0, 0x7f80_0000),
                (0x4080_0000, 0x3f00_0000),
                (0x7f80_0000, 0),
            ],
        ),
        (
            "v_sqrt_f32",
            &[
                (0xff80_0000, 0xffc0_0000),
                (0x8000_0000, 0x8000_0000),
                (0, 0),
                (0x4080_0000, 0x4000_0000),
                (0x7f80_0000, 0x7f80_0000),
            ],
        ),
        (
            "v_sin_f32",
            &[
                (0xff80_0000, 0xffc0_0000),
                (0xff7f_ffff, 0),
                (0x8000_0000, 0x8000_0000),
                (0x3e80_0000, 0x3f80_0000),
                (0x7f80_0000, 0xffc0_0000),
            ],
        ),
        (
            "v_cos_f32",
            &[
                (0xff80_0000, 0xffc0_0000),
                (0xff7f_ffff, 0x3f80_0000),
                (0x8000_0000, 0x3f80_0000),
                (0x3e80_0000, 0),
                (0x7f80_0000, 0xffc0_0000),
            ],
        ),
        ("v_rcp_f16", &[(0xfc00, 0x8000), (0xc000, 0xb800), (0x8000, 0xfc00), (0, 0x7c00)]),
        ("v_sqrt_f16", &[(0xfc00, 0xfe00), (0x8000, 0x8000), (0x4400, 0x4000), (0x7c00, 0x7c00)]),
        ("v_rsq_f16", &[(0xfc00, 0xfe00), (0x8000, 0xfc00), (0, 0x7c00), (0x4400, 0x3800)]),
        ("v_log_f16", &[(0xbc00, 0xfe00), (0x8000, 0xfc00), (0, 0xfc00), (0x3c00, 0)]),
        ("v_exp_f16", &[(0xfc00, 0), (0x8000, 0x3c00), (0x7c00, 0x7c00)]),
        ("v_ffbh_u32", &[(0, 0xffff_ffff), (0x8000_00ff, 0), (0x1000_00ff, 3), (1, 31)]),
        (
            "v_ffbh_i32",
            &[(0, 0xffff_ffff), (0x8000_0000, 1), (0xffff_0000, 16), (!0 >> 32, !0 >> 32)],
        ),
    ];
    for (name, pairs) in examples {
        let samples: Vec<Sources> = pairs.iter().map(|(source, _)| [*source, 0, 0, 0]).collect();
        check(name, DEFAULT_MODE, &samples, |s| {
            pairs.iter().find(|(source, _)| *source == s[0]).map_or(0, |(_, result)| *result)
        });
    }
}

#[test]
fn exact_points_are_exact() {
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
    // Denormals read as zero except by sine; angles of any size are reduced.
    assert_eq!(value("v_exp_f32", -127.0), 0.0);
    assert_eq!(value("v_log_f32", f32::from_bits(1)), f32::NEG_INFINITY);
    assert_eq!(value("v_rcp_f32", f32::from_bits(1)), f32::INFINITY);
    assert_eq!(value("v_sin_f32", f32::from_bits(1)).to_bits(), 6);
    assert_eq!(value("v_sin_f32", 300.25), 1.0);
    assert_eq!(value("v_cos_f32", 8_388_607.5), -1.0);
}

/// The neighbours of a reciprocal square root enclose the exact one: their squares times the source
/// lie on both sides of one. Reciprocal and square root are the host's correctly rounded ones.
#[test]
pub fn double_precision_matches_exact_results() {
    let mut random = Random(9);
    let mut sources: Vec<u64> = edges(Kind::F64);
    sources.extend((0..4000).map(|_| random.next()));
    let samples: Vec<Sources> = sources.iter().map(|bits| [*bits, 0, 0, 0]).collect();
    let functions: [(&str, Function); 2] = [("v_rcp_f64", |x| 1.0 / x), ("v_sqrt_f64", f64::sqrt)];
    for mode in MODES {
        let [flush_source, flush_result] = flushes(DOUBLE, mode);
        let special = |source: u64, exact: f64| {
            if DOUBLE.is_nan(source) {
                Some(source | DOUBLE.quiet_bit())
            } else if exact.is_nan() {
                Some(DOUBLE.sign() | DOUBLE.default_nan())
            } else {
                None
            }
        };
        for (name, function) in functions {
            check(name, mode, &samples, |s| {
                let source = flushed_if(flush_source, DOUBLE, s[0]);
                let exact = function(f64::from_bits(source));
                let result = special(source, exact).unwrap_or(exact.to_bits());
                flushed_if(flush_result, DOUBLE, result)
            });
        }
        let name = "v_rsq_f64";
        let operation = operation(name);
        for chunk in samples.chunks(LANES) {
            let mut lanes = [[0; 4]; LANES];
            lanes[..chunk.len()].copy_from_slice(chunk);
            for (sources, outcome) in lanes.iter().zip(run(operation, levels()[0], mode, &lanes)) {
                let source = flushed_if(flush_source, DOUBLE, sources[0]);
                let value = f64::from_bits(source);
                let root = 1.0 / value.sqrt();
                let got = outcome.value;
                let right = if let Some(nan) = special(source, root) {
                    got == nan
                } else if root == 0.0 || root.is_infinite() {
                    got == root.to_bits()
                } else {
                    // Below one: the square of the lower neighbour times the source.
                    let square = |bits: u64| {
                        let term = DOUBLE.term(bits);
                        let wide = term.times(term);
                        // Half of the digits are truncated, which is far less than a unit.
                        let cut = Term {
                            digits: wide.digits >> 32,
                            exponent: wide.exponent + 32,
                            ..wide
                        };
                        let product = cut.times(DOUBLE.term(source));
                        f64::from_bits(Rule::nearest(DOUBLE).rounded(&[product, Term::integer(-1)]))
                    };
                    square(got - 1) < 0.0 && square(got + 1) > 0.0
                };
                assert!(right, "{name}: {source:#x} gives {got:#x}");
            }
        }
    }
}
