//! Minimum, maximum and median, by an order of the bits.

use super::exact::{DOUBLE, Format, HALF, SINGLE};
use super::{MODES, check, flushed_if, flushes, operation, samples};
use crate::wave::Mode;

/// The place of a number in the order: minus zero comes before plus zero.
fn place(format: Format, bits: u64) -> i128 {
    let magnitude = i128::from(bits & !format.sign());
    if format.is_negative(bits) { -magnitude - 1 } else { magnitude }
}

fn is_signalling(format: Format, bits: u64) -> bool {
    format.is_nan(bits) && bits & format.quiet_bit() == 0
}

/// Bit 9 of MODE asks for IEEE rules: a signalling NaN comes out, quiet.
fn extreme(format: Format, mode: Mode, a: u64, b: u64, greater: bool) -> u64 {
    if mode.0 >> 9 & 1 != 0
        && let Some(nan) = [a, b].into_iter().find(|bits| is_signalling(format, *bits))
    {
        return nan | format.quiet_bit();
    }
    match (format.is_nan(a), format.is_nan(b)) {
        (true, _) => b,
        (false, true) => a,
        _ if (place(format, a) > place(format, b)) == greater => a,
        _ => b,
    }
}

/// The one between the others. Of zeros, which are equal, the first one counts as the greatest.
fn median(format: Format, mode: Mode, numbers: [u64; 3]) -> u64 {
    if numbers.iter().any(|bits| format.is_nan(*bits)) {
        let first = extreme(format, mode, numbers[0], numbers[1], false);
        return extreme(format, mode, first, numbers[2], false);
    }
    let value = |bits: u64| if format.is_zero(bits) { 0 } else { place(format, bits) };
    let greatest = numbers.map(value).into_iter().max();
    let mut rest = numbers.to_vec();
    rest.remove(numbers.iter().position(|bits| Some(value(*bits)) == greatest).unwrap_or(0));
    rest.into_iter().max_by_key(|bits| place(format, *bits)).unwrap_or(0)
}

#[test]
pub fn minimum_maximum_and_median() {
    for (suffix, format) in [("f16", HALF), ("f32", SINGLE), ("f64", DOUBLE)] {
        for mode in MODES {
            let check = |name: String, reference: &dyn Fn([u64; 3]) -> u64| {
                let [flush_sources, flush_results] = flushes(format, mode);
                check(&name, mode, &samples(operation(&name), 2000), |s| {
                    let sources = [s[0], s[1], s[2]];
                    let sources = sources.map(|bits| flushed_if(flush_sources, format, bits));
                    flushed_if(flush_results, format, reference(sources))
                });
            };
            for (name, greater) in [("min", false), ("max", true)] {
                let of = |a, b| extreme(format, mode, a, b, greater);
                check(format!("v_{name}_{suffix}"), &|[a, b, _]| of(a, b));
                if format != DOUBLE {
                    check(format!("v_{name}3_{suffix}"), &|[a, b, c]| of(of(a, b), c));
                }
            }
            if format == SINGLE {
                let of = |a, b, greater| extreme(format, mode, a, b, greater);
                check("v_maxmin_f32".into(), &|[a, b, c]| of(of(a, b, true), c, false));
                check("v_minmax_f32".into(), &|[a, b, c]| of(of(a, b, false), c, true));
            }
            if format != DOUBLE {
                check(format!("v_med3_{suffix}"), &|numbers| median(format, mode, numbers));
            }
        }
    }
}

/// The least or the greatest of three in the order of all numbers, unless a NaN is among them.
#[test]
pub fn minimum_and_maximum_of_three_with_nans() {
    let two = |format: Format, a: u64, b: u64, least: bool| {
        let quiet = format.quiet_bit();
        let signalling = |bits: &u64| format.is_nan(*bits) && bits & quiet == 0;
        let nans = [a, b].into_iter().filter(|bits| format.is_nan(*bits));
        if let Some(nan) = nans.clone().find(signalling).or(nans.clone().next()) {
            return nan | quiet;
        }
        let place = |bits: u64| {
            let magnitude = (bits & !format.sign()) as i64;
            if format.is_negative(bits) { -magnitude - 1 } else { magnitude }
        };
        if (place(a) < place(b)) == least { a } else { b }
    };
    for mode in MODES {
        for (kind, least) in [("minimum3", true), ("maximum3", false)] {
            let [flush_source, flush_result] = flushes(SINGLE, mode);
            let name = format!("v_{kind}_f32");
            check(&name, mode, &samples(operation(&name), 3000), |s| {
                let [a, b, c] = [s[0], s[1], s[2]].map(|x| flushed_if(flush_source, SINGLE, x));
                let inner = two(SINGLE, a, b, least);
                flushed_if(flush_result, SINGLE, two(SINGLE, inner, c, least))
            });
            let [flush_source, flush_result] = flushes(HALF, mode);
            let name = format!("v_pk_{kind}_f16");
            check(&name, mode, &samples(operation(&name), 3000), |s| {
                let half = |shift: u32| {
                    let [a, b, c] = [s[0], s[1], s[2]]
                        .map(|x| flushed_if(flush_source, HALF, x >> shift & 0xffff));
                    let inner = two(HALF, a, b, least);
                    flushed_if(flush_result, HALF, two(HALF, inner, c, least)) << shift
                };
                half(0) | half(16)
            });
        }
    }
}
