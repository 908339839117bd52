//! Minimum, maximum and median, checked with an ordering of the bits.

use super::exact::{DOUBLE, Format, HALF, SINGLE};
use super::{MODES, check, flushed_if, flushes, operation, samples};
use crate::wave::Mode;

/// Position of a number in the order, with minus zero before plus zero.
fn place(format: Format, bits: u64) -> i128 {
    let magnitude = i128::from(bits & !format.sign());
    if format.is_negative(bits) { -magnitude - 1 } else { magnitude }
}

fn is_signalling(format: Format, bits: u64) -> bool {
    format.is_nan(bits) && bits & format.quiet_bit() == 0
}

/// Minimum or maximum before gfx12. If bit 9 of MODE enables IEEE rules, a signalling NaN is
/// returned quieted.
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

/// Minimum or maximum on gfx12. `nan_wins` selects whether a NaN or a number takes precedence.
fn newer(format: Format, nan_wins: bool, a: u64, b: u64, greater: bool) -> u64 {
    let signalling = [a, b].into_iter().find(|bits| is_signalling(format, *bits));
    match (format.is_nan(a), format.is_nan(b)) {
        (false, false) if (place(format, a) > place(format, b)) == greater => a,
        (false, false) => b,
        (first, _) if nan_wins => {
            signalling.unwrap_or(if first { a } else { b }) | format.quiet_bit()
        }
        (true, true) => a | format.quiet_bit(),
        (true, false) => b,
        (false, true) => a,
    }
}

#[test]
pub fn gfx12_extremes_match_reference() {
    for (suffix, format) in [("f16", HALF), ("f32", SINGLE), ("f64", DOUBLE)] {
        for mode in MODES {
            let check = |name: String, reference: &dyn Fn([u64; 3]) -> u64| {
                let [flush_sources, flush_results] = flushes(format, mode);
                check(&name, mode, &samples(operation(&name), 1000), |s| {
                    let sources = [s[0], s[1], s[2]];
                    let sources = sources.map(|bits| flushed_if(flush_sources, format, bits));
                    flushed_if(flush_results, format, reference(sources))
                });
            };
            let number = |a, b, greater| newer(format, false, a, b, greater);
            let wins = |a, b, greater| newer(format, true, a, b, greater);
            for (name, long, greater) in [("min", "minimum", false), ("max", "maximum", true)] {
                check(format!("v_{name}_num_{suffix}"), &|[a, b, _]| number(a, b, greater));
                check(format!("v_{long}_{suffix}"), &|[a, b, _]| wins(a, b, greater));
                if format != DOUBLE {
                    check(format!("v_{name}3_num_{suffix}"), &|[a, b, c]| {
                        number(number(a, b, greater), c, greater)
                    });
                    check(format!("v_{long}3_{suffix}"), &|[a, b, c]| {
                        wins(wins(a, b, greater), c, greater)
                    });
                }
            }
            if format == DOUBLE {
                continue;
            }
            for (name, long, first) in
                [("minmax", "minimummaximum", false), ("maxmin", "maximumminimum", true)]
            {
                check(format!("v_{name}_num_{suffix}"), &|[a, b, c]| {
                    number(number(a, b, first), c, !first)
                });
                check(format!("v_{long}_{suffix}"), &|[a, b, c]| {
                    wins(wins(a, b, first), c, !first)
                });
            }
            check(format!("v_med3_num_{suffix}"), &|numbers| {
                if numbers.iter().any(|bits| format.is_nan(*bits)) {
                    return number(number(numbers[0], numbers[1], false), numbers[2], false);
                }
                median(format, Mode(0), numbers)
            });
            if format == HALF {
                for (name, nan_wins, greater) in [
                    ("v_pk_min_num_f16", false, false),
                    ("v_pk_max_num_f16", false, true),
                    ("v_pk_minimum_f16", true, false),
                    ("v_pk_maximum_f16", true, true),
                    ("v_pk_minimum3_f16", true, false),
                    ("v_pk_maximum3_f16", true, true),
                ] {
                    let [flush_sources, flush_results] = flushes(HALF, mode);
                    super::check(name, mode, &samples(operation(name), 500), |s| {
                        [0, 16].into_iter().fold(0, |all, shift| {
                            let [a, b, c] = [s[0], s[1], s[2]].map(|bits| {
                                flushed_if(flush_sources, HALF, bits >> shift & 0xffff)
                            });
                            let of_two = newer(HALF, nan_wins, a, b, greater);
                            let result = if name.contains('3') {
                                newer(HALF, nan_wins, of_two, c, greater)
                            } else {
                                of_two
                            };
                            all | flushed_if(flush_results, HALF, result) << shift
                        })
                    });
                }
            }
        }
    }
}

/// Returns the median. Among zeros, which compare equal, the first counts as the greatest.
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
pub fn extremes_and_medians_match_reference() {
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
                let extreme_of = |a, b| extreme(format, mode, a, b, greater);
                check(format!("v_{name}_{suffix}"), &|[a, b, _]| extreme_of(a, b));
                if format != DOUBLE {
                    check(format!("v_{name}3_{suffix}"), &|[a, b, c]| {
                        extreme_of(extreme_of(a, b), c)
                    });
                }
            }
            if format != DOUBLE {
                let extreme_of = |a, b, greater| extreme(format, mode, a, b, greater);
                check(format!("v_maxmin_{suffix}"), &|[a, b, c]| {
                    extreme_of(extreme_of(a, b, true), c, false)
                });
                check(format!("v_minmax_{suffix}"), &|[a, b, c]| {
                    extreme_of(extreme_of(a, b, false), c, true)
                });
            }
            if format != DOUBLE {
                check(format!("v_med3_{suffix}"), &|numbers| median(format, mode, numbers));
            }
        }
    }
}
