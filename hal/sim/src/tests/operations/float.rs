//! Sums, products, fused and unfused multiply-adds, rounding and scaling, checked against exact
//! sums.

use super::exact::{DOUBLE, Direction, Format, HALF, Rule, SINGLE, Term};
use super::{
    DEFAULT_MODE, MODES, Sources, all_halves, check, flushed_if, flushes, operation, samples,
};

/// Returns the NaN or infinity of a sum of products with a non-finite term.
fn special(format: Format, sources: &[u64], negate: &[bool], fused: bool) -> Option<u64> {
    if let Some(nan) = sources.iter().find(|bits| format.is_nan(**bits)) {
        return Some(nan | format.quiet_bit());
    }
    // The terms as signs of infinities.
    let term = |indices: &[usize]| -> Result<Option<bool>, ()> {
        let infinite = indices.iter().any(|i| format.is_infinite(sources[*i]));
        let zero = indices.iter().any(|i| format.is_zero(sources[*i]));
        let negative = indices
            .iter()
            .fold(false, |sign, i| sign != (format.is_negative(sources[*i]) != negate[*i]));
        match (infinite, zero) {
            (true, true) => Err(()),
            (true, false) => Ok(Some(negative)),
            _ => Ok(None),
        }
    };
    let terms: Vec<_> = match (sources.len(), fused) {
        (1, _) => vec![term(&[0])],
        (2, false) => vec![term(&[0]), term(&[1])],
        (2, true) => vec![term(&[0, 1])],
        _ => vec![term(&[0, 1]), term(&[2])],
    };
    if terms.contains(&Err(())) {
        return Some(format.default_nan());
    }
    let signs: Vec<bool> = terms.into_iter().filter_map(|term| term.unwrap_or(None)).collect();
    match signs.as_slice() {
        [] => None,
        [first, rest @ ..] if rest.iter().all(|sign| sign == first) => {
            Some(format.infinity() | if *first { format.sign() } else { 0 })
        }
        _ => Some(format.default_nan()),
    }
}

/// `a + b`, each optionally negated, rounded once.
pub fn sum(rule: Rule, a: u64, b: u64, negate: [bool; 2]) -> u64 {
    special(rule.format, &[a, b], &negate, false).unwrap_or_else(|| {
        let mut terms = [rule.format.term(a), rule.format.term(b)];
        for (term, negate) in terms.iter_mut().zip(negate) {
            term.negative ^= negate;
        }
        rule.rounded(&terms)
    })
}

fn product(rule: Rule, a: u64, b: u64) -> u64 {
    let format = rule.format;
    special(format, &[a, b], &[false; 2], true)
        .unwrap_or_else(|| rule.rounded(&[format.term(a).times(format.term(b))]))
}

/// `a * b + c`, rounded once.
pub fn fused(rule: Rule, a: u64, b: u64, c: u64) -> u64 {
    let format = rule.format;
    special(format, &[a, b, c], &[false; 3], true)
        .unwrap_or_else(|| rule.rounded(&[format.term(a).times(format.term(b)), format.term(c)]))
}

fn unfused(rule: Rule, a: u64, b: u64, c: u64) -> u64 {
    let format = rule.format;
    let [a, b, c] = [a, b, c].map(|bits| format.flush(bits));
    if let Some(nan) = [a, b, c].into_iter().find(|bits| format.is_nan(*bits)) {
        return nan | format.quiet_bit();
    }
    let product = format.flush(product(rule, a, b));
    format.flush(sum(rule, product, c, [false; 2]))
}

/// Checks an operation in every MODE.
fn in_every_mode(name: &str, format: Format, reference: impl Fn(&Sources, Rule) -> u64) {
    let samples = samples(operation(name), 2000);
    for mode in MODES {
        let [flush_sources, flush_results] = flushes(format, mode);
        check(name, mode, &samples, |sources| {
            let sources = sources.map(|bits| flushed_if(flush_sources, format, bits));
            flushed_if(flush_results, format, reference(&sources, Rule::from_mode(format, mode)))
        });
    }
}

const FORMATS: [(&str, Format); 3] = [("f16", HALF), ("f32", SINGLE), ("f64", DOUBLE)];

#[test]
pub fn sums_and_products_are_rounded_once() {
    for (suffix, format) in FORMATS {
        in_every_mode(&format!("v_add_{suffix}"), format, |s, rule| {
            sum(rule, s[0], s[1], [false; 2])
        });
        in_every_mode(&format!("v_mul_{suffix}"), format, |s, rule| product(rule, s[0], s[1]));
        if suffix != "f64" {
            in_every_mode(&format!("v_sub_{suffix}"), format, |s, rule| {
                sum(rule, s[0], s[1], [false, true])
            });
            // The first NaN source is returned, independent of the order of the subtraction.
            in_every_mode(&format!("v_subrev_{suffix}"), format, |s, rule| {
                let nan = s[..2].iter().find(|bits| format.is_nan(**bits));
                nan.map_or_else(
                    || sum(rule, s[1], s[0], [false, true]),
                    |nan| nan | format.quiet_bit(),
                )
            });
        }
    }
}

#[test]
pub fn fused_multiply_add_is_rounded_once() {
    let names = [
        ("v_fma_f16", HALF),
        ("v_fma_legacy_f16", HALF),
        ("v_fmac_f16", HALF),
        ("v_fmaak_f16", HALF),
        ("v_fmaak_f32", SINGLE),
        ("v_fmamk_f16", HALF),
        ("v_fmamk_f32", SINGLE),
        ("v_fma_f32", SINGLE),
        ("v_fmac_f32", SINGLE),
        ("v_fma_f64", DOUBLE),
        ("v_fmac_f64", DOUBLE),
    ];
    for (name, format) in names {
        in_every_mode(name, format, |s, rule| fused(rule, s[0], s[1], s[2]));
    }
}

#[test]
pub fn unfused_multiply_add_is_rounded_twice() {
    let names = [
        ("v_mad_f16", HALF),
        ("v_mac_f16", HALF),
        ("v_madak_f16", HALF),
        ("v_mad_legacy_f16", HALF),
        ("v_mad_f32", SINGLE),
        ("v_mac_f32", SINGLE),
        ("v_madak_f32", SINGLE),
        ("v_madmk_f16", HALF),
        ("v_madmk_f32", SINGLE),
    ];
    for (name, format) in names {
        in_modes_ignoring_denormals(name, format, |s, rule| unfused(rule, s[0], s[1], s[2]));
    }
}

/// Checks an operation that ignores the denormal bits of MODE.
fn in_modes_ignoring_denormals(
    name: &str,
    format: Format,
    reference: impl Fn(&Sources, Rule) -> u64,
) {
    let samples = samples(operation(name), 2000);
    for mode in MODES {
        check(name, mode, &samples, |sources| reference(sources, Rule::from_mode(format, mode)));
    }
}

#[test]
pub fn legacy_products_of_zero_are_zero() {
    in_every_mode("v_mul_legacy_f32", SINGLE, |s, rule| {
        if SINGLE.is_zero(s[0]) || SINGLE.is_zero(s[1]) { 0 } else { product(rule, s[0], s[1]) }
    });
    for name in ["v_fma_legacy_f32", "v_fmac_legacy_f32"] {
        in_every_mode(name, SINGLE, |s, rule| {
            match [s[0], s[1]].map(|bits| SINGLE.is_zero(bits)) {
                [false, false] => fused(rule, s[0], s[1], s[2]),
                // The result is a NaN only if the third source is one; then the first NaN source is
                // returned.
                _ if SINGLE.is_nan(s[2]) => {
                    let nan = s[..3].iter().find(|bits| SINGLE.is_nan(**bits));
                    nan.copied().unwrap_or_default() | SINGLE.quiet_bit()
                }
                _ => s[2],
            }
        });
    }
    in_every_mode("v_mullit_f32", SINGLE, |s, rule| {
        let value = |bits: u64| f32::from_bits(bits as u32);
        let [b, c] = [value(s[1]), value(s[2])];
        if b > f32::MIN && c > 0.0 {
            let product = product(rule, s[0], s[1]);
            // The first NaN source is returned.
            let nan = s[..3].iter().find(|bits| SINGLE.is_nan(**bits));
            return if SINGLE.is_nan(product) {
                nan.map_or(product, |bits| bits | SINGLE.quiet_bit())
            } else {
                product
            };
        }
        f32::MIN.to_bits().into()
    });
    in_modes_ignoring_denormals("v_mad_legacy_f32", SINGLE, |s, rule| {
        let [a, b, c] = [s[0], s[1], s[2]].map(|bits| SINGLE.flush(bits));
        if SINGLE.is_zero(a) || SINGLE.is_zero(b) {
            // The result is a NaN only if the third source is one; then the first NaN source is
            // returned.
            let nan = [a, b, c].into_iter().find(|bits| SINGLE.is_nan(*bits));
            if SINGLE.is_nan(c) {
                return nan.unwrap_or(c) | SINGLE.quiet_bit();
            }
            return SINGLE.flush(sum(rule, 0, c, [false; 2]));
        }
        unfused(rule, a, b, c)
    });
}

/// Returns the floor of a finite number, whether the number is integral, and the
/// ordering of its fraction relative to one half.
fn floor(format: Format, bits: u64) -> (i128, bool, i128) {
    let term = format.term(bits);
    let signed = if term.negative { -(term.digits as i128) } else { term.digits as i128 };
    if term.exponent >= 0 {
        return (signed, true, 0);
    }
    let shift = (-term.exponent).min(100);
    let whole = signed >> shift;
    let rest = signed - (whole << shift);
    (whole, rest == 0, (rest << 1).cmp(&(1 << shift)) as i128)
}

#[test]
pub fn rounding_to_integers_matches_reference() {
    for (suffix, format) in FORMATS {
        let rounded = |bits: u64, choose: fn(i128, bool, i128, bool) -> i128| {
            if let Some(special) = special(format, &[bits], &[false], false) {
                return special;
            }
            if format.term(bits).exponent >= 0 {
                return bits;
            }
            let (whole, exact, half) = floor(format, bits);
            let chosen = choose(whole, exact, half, format.is_negative(bits));
            let result = Rule::nearest(format).rounded(&[Term::integer(chosen)]);
            // A zero result keeps the sign of the source.
            if format.is_zero(result) { bits & format.sign() } else { result }
        };
        type Choice = fn(i128, bool, i128, bool) -> i128;
        let choices: [(&str, Choice); 4] = [
            ("floor", |whole, _, _, _| whole),
            ("ceil", |whole, exact, _, _| whole + i128::from(!exact)),
            ("trunc", |whole, exact, _, negative| whole + i128::from(!exact && negative)),
            ("rndne", |whole, exact, half, _| {
                let up = !exact && (half > 0 || half == 0 && whole & 1 != 0);
                whole + i128::from(up)
            }),
        ];
        for (name, choose) in choices {
            let name = format!("v_{name}_{suffix}");
            in_every_mode(&name, format, |s, _| rounded(s[0], choose));
            if format == HALF {
                check(&name, DEFAULT_MODE, &all_halves(), |s| rounded(s[0], choose));
            }
        }
    }
}

#[test]
pub fn fractions_are_below_one() {
    for (suffix, format) in FORMATS {
        let name = format!("v_fract_{suffix}");
        let below_one = (format.infinity() >> 1 & !((1 << format.mantissa) - 1)) - 1;
        let reference = |s: &Sources, rule: Rule| {
            if format.is_nan(s[0]) {
                return s[0] | format.quiet_bit();
            }
            if format.is_infinite(s[0]) {
                return format.default_nan();
            }
            let source = format.term(s[0]);
            if source.exponent >= 0 {
                // A difference of equal numbers is minus zero when rounding down.
                return if rule.direction == Direction::Down { format.sign() } else { 0 };
            }
            let (whole, ..) = floor(format, s[0]);
            let minus_floor = Term { negative: !source.negative, ..Term::integer(-whole) };
            let difference = rule.rounded(&[source, minus_floor]);
            if format.is_negative(difference) { difference } else { difference.min(below_one) }
        };
        in_every_mode(&name, format, reference);
        if format == HALF {
            for mode in MODES.into_iter().filter(|mode| !flushes(HALF, *mode).contains(&true)) {
                check(&name, mode, &all_halves(), |s| reference(s, Rule::from_mode(HALF, mode)));
            }
        }
    }
}

#[test]
pub fn scaling_by_powers_of_two_is_rounded_once() {
    for (suffix, format) in FORMATS {
        let name = format!("v_ldexp_{suffix}");
        let mut samples = samples(operation(&name), 4000);
        let drawn: Vec<Sources> =
            samples.iter().map(|s| [s[0], (s[1] % 4400).wrapping_sub(2200), 0, 0]).collect();
        samples.extend(drawn);
        for mode in MODES {
            let rule = Rule::from_mode(format, mode);
            let [flush_source, flush_result] = flushes(format, mode);
            check(&name, mode, &samples, |s| {
                let source = flushed_if(flush_source, format, s[0]);
                let scaled = special(format, &[source], &[false], false).unwrap_or_else(|| {
                    let by = if format == HALF { i32::from(s[1] as i16) } else { s[1] as i32 };
                    let mut term = format.term(source);
                    // Beyond these exponents every number over- or underflows.
                    term.exponent = (term.exponent + by.clamp(-2200, 2200)).clamp(-2300, 2000);
                    rule.rounded(&[term])
                });
                flushed_if(flush_result, format, scaled)
            });
        }
    }
}

#[test]
pub fn exponents_and_mantissas_match_reference() {
    for (suffix, format) in FORMATS {
        let parts = |bits: u64| {
            let term = format.term(bits);
            let digits = 128 - term.digits.leading_zeros() as i32;
            (Term { exponent: -digits, ..term }, digits + term.exponent)
        };
        let plain = |bits: u64| format.is_zero(bits) || bits & !format.sign() >= format.infinity();
        in_every_mode(&format!("v_frexp_mant_{suffix}"), format, |s, _| {
            if format.is_nan(s[0]) {
                s[0] | format.quiet_bit()
            } else if plain(s[0]) {
                s[0]
            } else {
                Rule::nearest(format).rounded(&[parts(s[0]).0])
            }
        });
        let integer = if suffix == "f16" { "i16" } else { "i32" };
        let name = format!("v_frexp_exp_{integer}_{suffix}");
        let mask = if suffix == "f16" { 0xffff } else { 0xffff_ffff };
        for mode in MODES {
            let flush = flushes(format, mode)[0];
            check(&name, mode, &samples(operation(&name), 1000), |s| {
                let source = flushed_if(flush, format, s[0]);
                if plain(source) { 0 } else { parts(source).1 as u64 & mask }
            });
        }
    }
}
