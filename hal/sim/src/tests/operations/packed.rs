//! Packed and mixed precision, and dot products of halves, checked against exact sums.

use super::exact::{DOUBLE, Format, HALF, Rule, SINGLE};
use super::{MODES, Sources, check, flushed_if, flushes, operation, samples};
use crate::wave::Mode;

/// Multiplies two numbers and adds a third, rounded once. NaNs and infinities are computed in the
/// host's double precision, which represents all of these exactly.
fn fused(rule: Rule, a: u64, b: u64, c: u64) -> u64 {
    let format = rule.format;
    if let Some(nan) = [a, b, c].into_iter().find(|bits| format.is_nan(*bits)) {
        return nan | format.quiet_bit();
    }
    let terms = [a, b, c].map(|bits| format.term(bits));
    if [a, b, c].iter().any(|bits| format.is_infinite(*bits)) {
        let wide = [a, b, c].map(|bits| {
            let magnitude = if format.is_infinite(bits) {
                f64::INFINITY
            } else {
                f64::from_bits(Rule::nearest(DOUBLE).rounded(&[format.term(bits & !format.sign())]))
            };
            if format.is_negative(bits) { -magnitude } else { magnitude }
        });
        let result = wide[0] * wide[1] + wide[2];
        return if result.is_nan() {
            format.default_nan()
        } else {
            format.infinity() | if result < 0.0 { format.sign() } else { 0 }
        };
    }
    rule.rounded(&[terms[0].times(terms[1]), terms[2]])
}

const ONE_HALF: u64 = 0x3c00;
const ONE_SINGLE: u64 = 0x3f80_0000;

/// Applies a reference to both elements, flushing denormals as MODE requires.
fn both(s: &Sources, format: Format, mode: Mode, element: impl Fn([u64; 3], Rule) -> u64) -> u64 {
    let bits = format.mantissa + format.exponent + 1;
    let [flush_sources, flush_results] = flushes(format, mode);
    let part = |shift: u32| {
        let sources = [0, 1, 2].map(|i| s[i] >> shift & ((1 << bits) - 1));
        let sources = sources.map(|bits| flushed_if(flush_sources, format, bits));
        flushed_if(flush_results, format, element(sources, Rule::from_mode(format, mode)))
    };
    part(0) | part(bits) << bits
}

/// Returns a sum, computed as a product with one. A NaN must not come from the one.
fn sum(rule: Rule, one: u64, a: u64, b: u64) -> u64 {
    fused(rule, a, one, b)
}

/// Returns a product; a zero has the sign of the product.
fn product(rule: Rule, a: u64, b: u64) -> u64 {
    let format = rule.format;
    let negative = format.is_negative(a) != format.is_negative(b);
    fused(rule, a, b, if negative { format.sign() } else { 0 })
}

#[test]
pub fn packed_halves_match_reference() {
    let place = |bits: u64| {
        let magnitude = (bits & 0x7fff) as i64;
        if bits & 0x8000 != 0 { -magnitude - 1 } else { magnitude }
    };
    for mode in MODES {
        let check = |name: &str, element: &dyn Fn([u64; 3], Rule) -> u64| {
            let samples = samples(operation(name), 2000);
            check(name, mode, &samples, |s| both(s, HALF, mode, element));
        };
        check("v_pk_add_f16", &|[a, b, _], rule| sum(rule, ONE_HALF, a, b));
        check("v_pk_mul_f16", &|[a, b, _], rule| product(rule, a, b));
        check("v_pk_fma_f16", &|[a, b, c], rule| fused(rule, a, b, c));
        check("v_pk_fmac_f16", &|[a, b, c], rule| fused(rule, a, b, c));
        let choose = |[a, b, _]: [u64; 3], least: bool| {
            let ieee = mode.0 >> 9 & 1 != 0;
            let signalling = |bits: &u64| HALF.is_nan(*bits) && bits & 0x200 == 0;
            match [a, b].iter().find(|bits| ieee && signalling(bits)) {
                Some(nan) => nan | 0x200,
                None if HALF.is_nan(a) => b,
                None if HALF.is_nan(b) => a,
                None if (place(a) < place(b)) == least => a,
                None => b,
            }
        };
        check("v_pk_min_f16", &|elements, _| choose(elements, true));
        check("v_pk_max_f16", &|elements, _| choose(elements, false));
    }
}

#[test]
pub fn packed_singles_match_reference() {
    for mode in MODES {
        let check = |name: &str, element: &dyn Fn([u64; 3], Rule) -> u64| {
            let samples = samples(operation(name), 2000);
            check(name, mode, &samples, |s| both(s, SINGLE, mode, element));
        };
        check("v_pk_add_f32", &|[a, b, _], rule| sum(rule, ONE_SINGLE, a, b));
        check("v_pk_mul_f32", &|[a, b, _], rule| product(rule, a, b));
        check("v_pk_fma_f32", &|[a, b, c], rule| fused(rule, a, b, c));
    }
}

/// Converts a single-precision result to half precision.
fn halved(rule: Rule, bits: u64) -> u64 {
    let sign = bits >> 16 & 0x8000;
    if SINGLE.is_nan(bits) {
        sign | 0x7e00 | bits >> 13 & 0x3ff
    } else if SINGLE.is_infinite(bits) {
        sign | 0x7c00
    } else {
        rule.rounded(&[SINGLE.term(bits)])
    }
}

#[test]
pub fn mixed_precision_matches_reference() {
    let samples = samples(operation("v_fma_mix_f32"), 2000);
    for mode in MODES {
        let [flush_sources, flush_single] = flushes(SINGLE, mode);
        let flush_half = flushes(HALF, mode)[1];
        let single = |s: &Sources| {
            let [a, b, c] = [s[0], s[1], s[2]].map(|bits| flushed_if(flush_sources, SINGLE, bits));
            fused(Rule::from_mode(SINGLE, mode), a, b, c)
        };
        let half = |s: &Sources| {
            flushed_if(flush_half, HALF, halved(Rule::from_mode(HALF, mode), single(s)))
        };
        check("v_fma_mix_f32", mode, &samples, |s| flushed_if(flush_single, SINGLE, single(s)));
        check("v_fma_mixlo_f16", mode, &samples, half);
        check("v_fma_mixhi_f16", mode, &samples, |s| half(s) << 16);
    }
}

/// Converts half precision to single precision.
pub fn widened(bits: u64) -> u64 {
    let sign = (bits & 0x8000) << 16;
    if HALF.is_nan(bits) {
        sign | 0x7fc0_0000 | (bits & 0x3ff) << 13
    } else if HALF.is_infinite(bits) {
        sign | 0x7f80_0000
    } else if bits & 0x7fff == 0 {
        sign
    } else {
        Rule::nearest(SINGLE).rounded(&[HALF.term(bits)])
    }
}

/// Adds the low product, the high product and the third source, rounding to nearest even and
/// flushing single-precision denormals in every mode. gfx90a flushes denormals of half precision.
#[test]
pub fn half_dot_products_match_reference() {
    let rule = Rule::nearest(SINGLE);
    for (word, flushes) in [("", false), (" gfx90a", true)] {
        for name in ["v_dot2_f32_f16", "v_dot2c_f32_f16"].map(|name| format!("{name}{word}")) {
            for mode in MODES {
                check(&name, mode, &samples(operation(&name), 2000), |s| {
                    let [a0, b0, a1, b1] = [s[0], s[1], s[0] >> 16, s[1] >> 16]
                        .map(|bits| widened(flushed_if(flushes, HALF, bits & 0xffff)));
                    let third = SINGLE.flush(s[2]);
                    let sources = [a0, b0, a1, b1, third];
                    if let Some(nan) = sources.into_iter().find(|bits| SINGLE.is_nan(*bits)) {
                        return nan | SINGLE.quiet_bit();
                    }
                    let products =
                        sum(rule, ONE_SINGLE, product(rule, a0, b0), product(rule, a1, b1));
                    SINGLE.flush(sum(rule, ONE_SINGLE, products, third))
                });
            }
        }
    }
}
