//! Division sequences as compilers expand them, which must give the correctly rounded quotient.

use super::exact::{DOUBLE, Direction, Format, HALF, Rule, SINGLE};
use super::{
    DEFAULT_MODE, MODES, Random, Sources, check, control, draw, flushed_if, flushes, operation,
    run, samples,
};
use crate::execute::lane::Kind;
use crate::wave::{LANES, Level, Mode};

/// A value per lane.
type Lanes = [u64; LANES];

/// Executes an operation on all lanes.
fn execute(name: &str, mode: Mode, sources: [Lanes; 4]) -> (Lanes, Lanes) {
    let lanes: [Sources; LANES] =
        std::array::from_fn(|lane| std::array::from_fn(|source| sources[source][lane]));
    let outcomes = run(operation(name), Level::Plain, mode, &lanes);
    (outcomes.map(|outcome| outcome.value), outcomes.map(|outcome| outcome.mask.into()))
}

/// LLVM's expansion of a division (`LowerFDIV32`, `LowerFDIV64`). If MODE flushes denormals,
/// flushing is disabled for the iteration only.
fn divide(suffix: &str, mode: Mode, numerators: Lanes, denominators: Lanes) -> Lanes {
    let (one, sign) = match suffix {
        "f32" => (0x3f80_0000, SINGLE.sign()),
        _ => (0x3ff0_0000_0000_0000, DOUBLE.sign()),
    };
    let none = [0; LANES];
    let ones = [one; LANES];
    let scale = |value| {
        execute(&format!("v_div_scale_{suffix}"), mode, [value, denominators, numerators, none])
    };
    let fma = |a, b, c| execute(&format!("v_fma_{suffix}"), DEFAULT_MODE, [a, b, c, none]).0;
    let negated = |values: Lanes| values.map(|bits| bits ^ sign);
    let (denominator, _) = scale(denominators);
    let (numerator, scaled) = scale(numerators);
    let minus = negated(denominator);
    let mut reciprocal =
        execute(&format!("v_rcp_{suffix}"), mode, [denominator, none, none, none]).0;
    let steps = if suffix == "f32" { 1 } else { 2 };
    for _ in 0..steps {
        let error = fma(minus, reciprocal, ones);
        reciprocal = fma(error, reciprocal, reciprocal);
    }
    let mut quotient =
        execute(&format!("v_mul_{suffix}"), DEFAULT_MODE, [numerator, reciprocal, none, none]).0;
    let mut rest = fma(minus, quotient, numerator);
    if suffix == "f32" {
        quotient = fma(rest, reciprocal, quotient);
        rest = fma(minus, quotient, numerator);
    }
    let name = format!("v_div_fmas_{suffix}");
    let quotient = execute(&name, mode, [rest, reciprocal, quotient, scaled]).0;
    let name = format!("v_div_fixup_{suffix}");
    execute(&name, mode, [quotient, denominators, numerators, none]).0
}

fn agrees(suffix: &str, mode: Mode, host: impl Fn(u64, u64) -> u64, format: Format) {
    let kind = if suffix == "f32" { Kind::F32 } else { Kind::F64 };
    let mut random = Random(7);
    for _ in 0..if control::records() { 1 } else { 2000 } {
        let numerators = std::array::from_fn(|_| draw(&mut random, kind));
        let denominators = std::array::from_fn(|_| draw(&mut random, kind));
        let quotients = divide(suffix, mode, numerators, denominators);
        let [flush_sources, flush_result] = flushes(format, mode);
        for lane in 0..LANES {
            let [numerator, denominator] = [numerators[lane], denominators[lane]]
                .map(|bits| flushed_if(flush_sources, format, bits));
            let expected = if format.is_nan(numerator) {
                numerator | format.quiet_bit()
            } else if format.is_nan(denominator) {
                denominator | format.quiet_bit()
            } else {
                let quotient = host(numerator, denominator);
                // The manual's NaN for an invalid division is negative.
                if format.is_nan(quotient) {
                    format.default_nan() | format.sign()
                } else {
                    flushed_if(flush_result, format, quotient)
                }
            };
            let got = quotients[lane];
            assert!(
                got == expected,
                "v_div_*_{suffix}: {numerator:#x} / {denominator:#x} is {got:#x}, not {expected:#x}"
            );
        }
    }
}

#[test]
pub fn single_precision_quotients_are_correctly_rounded() {
    let host = |a: u64, b: u64| (f32::from_bits(a as u32) / f32::from_bits(b as u32)).to_bits();
    agrees("f32", DEFAULT_MODE, |a, b| host(a, b).into(), SINGLE);
}

/// Division as in kernels compiled to flush single-precision denormals.
#[test]
fn flushed_single_precision_quotients_are_correctly_rounded() {
    let host = |a: u64, b: u64| (f32::from_bits(a as u32) / f32::from_bits(b as u32)).to_bits();
    agrees("f32", Mode(0x3c0), |a, b| host(a, b).into(), SINGLE);
}

#[test]
pub fn double_precision_quotients_are_correctly_rounded() {
    agrees("f64", DEFAULT_MODE, |a, b| (f64::from_bits(a) / f64::from_bits(b)).to_bits(), DOUBLE);
}

/// Results of RDNA 3 from tinygrad's `test/amd/hw/test_vop3.py`, `TestDivScale` and
/// `TestVDivScaleF64`. Single precision runs with denormals flushed, as in these tests.
#[test]
fn scaling_matches_hardware() {
    let modes = [Mode(0x3c0), DEFAULT_MODE];
    let one = 1.0f32.to_bits().into();
    let bits = |value: f32| u64::from(value.to_bits());
    let wide = |value: f64| value.to_bits();
    const NAN: u64 = 0x7fc0_0000;
    const WIDE_NAN: u64 = 0x7ff8_0000_0000_0000;
    // Index of the scaled source, denominator, numerator, result, mask.
    let of_single: [(usize, u64, u64, u64, bool); 9] = [
        (2, bits(4.0), one, one, false),
        (2, bits(4.0), bits(2.0), bits(2.0), false),
        (2, 0, one, NAN, true),
        (2, one, 0, NAN, true),
        (1, one, 0x7f7f_ffff, bits(1.8446744e19), true),
        (2, one, 0x7f7f_ffff, 0x7f7f_ffff, true),
        (1, 1, one, NAN, true),
        (2, one, 0x0080_0000, 0x2080_0000, true),
        (2, 0x7f00_0000, one, one, true),
    ];
    let of_double = [
        (2, wide(2.0), wide(2.0), wide(2.0), false),
        (2, 0, wide(1.0), WIDE_NAN, true),
        (1, 0, wide(2.0), WIDE_NAN, true),
    ];
    let cases = [("f32", &of_single[..], modes[0]), ("f64", &of_double[..], modes[1])];
    for (suffix, cases, mode) in cases {
        for &(scaled, denominator, numerator, result, mask) in cases {
            let value = if scaled == 1 { denominator } else { numerator };
            let sources = [value, denominator, numerator, 0].map(|bits| [bits; LANES]);
            let (results, masks) = execute(&format!("v_div_scale_{suffix}"), mode, sources);
            let got = (results[0], masks[0] != 0);
            assert_eq!(got, (result, mask), "{suffix}: {numerator:#x} / {denominator:#x}");
        }
    }
}

/// The last multiply-add and the scaling back, by the power of two that moves the quotient (the
/// third source) away from the nearer end of the range.
#[test]
pub fn final_step_scales_quotient_back() {
    for (name, format, power) in [("v_div_fmas_f32", SINGLE, 64), ("v_div_fmas_f64", DOUBLE, 128)] {
        let one = format.infinity() >> 1 & !((1 << format.mantissa) - 1);
        for mode in MODES {
            let rule = Rule::from_mode(format, mode);
            // Denormal sources are kept.
            let flush_result = flushes(format, mode)[1];
            check(name, mode, &samples(operation(name), 4000), |s| {
                let [a, b, c] = [s[0], s[1], s[2]];
                let result = super::float::fused(rule, a, b, c);
                let special =
                    [a, b, c].iter().any(|bits| bits & !format.sign() >= format.infinity());
                if s[3] & 1 == 0 || special {
                    return flushed_if(flush_result, format, result);
                }
                let great = c & !format.sign() >= one + (1 << format.mantissa);
                let shift = if great { power } else { -power };
                let mut terms = [format.term(a).times(format.term(b)), format.term(c)];
                terms.iter_mut().for_each(|term| term.exponent += shift);
                flushed_if(flush_result, format, rule.rounded(&terms))
            });
        }
    }
}

/// The last step: signs, and results that are not quotients of finite numbers.
#[test]
pub fn fixup_handles_signs_and_special_values() {
    let names = [
        ("v_div_fixup_f16", HALF, i32::MIN),
        ("v_div_fixup_legacy_f16", HALF, i32::MIN),
        ("v_div_fixup_f32", SINGLE, -150),
        ("v_div_fixup_f64", DOUBLE, -1075),
    ];
    for (name, format, underflow) in names {
        for mode in MODES {
            let rule = Rule::from_mode(format, mode);
            let [flush_sources, flush_result] = flushes(format, mode);
            check(name, mode, &samples(operation(name), 4000), |s| {
                let [quotient, denominator, numerator] =
                    [s[0], s[1], s[2]].map(|bits| flushed_if(flush_sources, format, bits));
                let negative = format.is_negative(denominator) != format.is_negative(numerator);
                let sign = if negative { format.sign() } else { 0 };
                let exponent = |bits: u64| ((bits & !format.sign()) >> format.mantissa) as i32;
                let (zero, infinite) = (|b| format.is_zero(b), |b| format.is_infinite(b));
                let nan = [numerator, denominator].into_iter().find(|bits| format.is_nan(*bits));
                let result = if let Some(nan) = nan {
                    nan | format.quiet_bit()
                } else if zero(numerator) && zero(denominator)
                    || infinite(numerator) && infinite(denominator)
                {
                    format.sign() | format.default_nan()
                } else if zero(denominator) || infinite(numerator) {
                    sign | format.infinity()
                } else if infinite(denominator) || zero(numerator) {
                    sign
                } else if exponent(numerator) - exponent(denominator) < underflow {
                    // Less than half of the least denormal.
                    let away = match rule.direction {
                        Direction::Up => !negative,
                        Direction::Down => negative,
                        Direction::Even | Direction::Zero => false,
                    };
                    sign | u64::from(away)
                } else if format.is_nan(quotient) {
                    sign | rule.overflow(negative)
                } else {
                    sign | quotient & !format.sign()
                };
                flushed_if(flush_result, format, result)
            });
        }
    }
}

/// The product of 2/pi and a power of two, checked with the host's digits.
#[test]
pub fn trig_preop_returns_digits_of_two_over_pi() {
    let name = "v_trig_preop_f64";
    let one = 1.0f64.to_bits();
    let lanes: [Sources; LANES] = std::array::from_fn(|lane| [one, lane as u64 % 18, 0, 0]);
    let parts = run(operation(name), Level::Plain, DEFAULT_MODE, &lanes);
    let first = f64::from_bits(parts[0].value);
    let rest = f64::from_bits(parts[1].value);
    assert_eq!(first + rest, std::f64::consts::FRAC_2_PI);
    // Segments are adjacent, without gap or overlap.
    for (segment, part) in parts[..18].iter().enumerate() {
        let part = f64::from_bits(part.value);
        let scale = 2f64.powi(53 * (segment as i32 + 1));
        assert!(part * scale < 2f64.powi(53) && (part * scale).fract() == 0.0, "{segment}");
    }
    // The exponent of a large argument selects the first segment.
    let great = 2f64.powi(200).to_bits();
    let shifted = run(operation(name), Level::Plain, DEFAULT_MODE, &[[great, 0, 0, 0]; LANES])[0];
    let skipped = 200 + 1023 - 1077;
    let from_first = f64::from_bits(shifted.value) * 2f64.powi(skipped);
    let all: f64 = (0..18)
        .map(|segment| f64::from_bits(parts[segment].value) * 2f64.powi(skipped))
        .map(|part| part % 1.0)
        .sum::<f64>()
        % 1.0;
    assert!((from_first - all).abs() < 1e-15, "{from_first} {all}");
}
