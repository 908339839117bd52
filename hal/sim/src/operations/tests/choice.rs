//! Minimum, maximum and median, by an order of the bits.

use super::exact::{DOUBLE, Format, HALF, SINGLE};
use super::{DEFAULT_MODE, check, operation, samples};
use crate::wave::Mode;

/// No IEEE rules.
const NOT_IEEE: Mode = Mode(0x1f0);

/// The place of a number in the order: minus zero comes before plus zero.
fn place(format: Format, bits: u64) -> i128 {
    let magnitude = i128::from(bits & !format.sign());
    if format.is_negative(bits) { -magnitude - 1 } else { magnitude }
}

fn is_signalling(format: Format, bits: u64) -> bool {
    format.is_nan(bits) && bits & format.quiet_bit() == 0
}

fn extreme(format: Format, mode: Mode, a: u64, b: u64, greater: bool) -> u64 {
    if mode == DEFAULT_MODE
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

#[test]
fn minimum_maximum_and_median() {
    for (suffix, format) in [("f16", HALF), ("f32", SINGLE), ("f64", DOUBLE)] {
        for mode in [DEFAULT_MODE, NOT_IEEE] {
            for (name, greater) in [("min", false), ("max", true)] {
                let two = format!("v_{name}_{suffix}");
                check(&two, mode, &samples(operation(&two), 3000), |s| {
                    extreme(format, mode, s[0], s[1], greater)
                });
                if format == DOUBLE {
                    continue;
                }
                let three = format!("v_{name}3_{suffix}");
                check(&three, mode, &samples(operation(&three), 3000), |s| {
                    let first = extreme(format, mode, s[0], s[1], greater);
                    extreme(format, mode, first, s[2], greater)
                });
            }
            if format == DOUBLE {
                continue;
            }
            let median = format!("v_med3_{suffix}");
            check(&median, mode, &samples(operation(&median), 3000), |s| {
                let mut three = [s[0], s[1], s[2]];
                if three.iter().any(|bits| format.is_nan(*bits)) {
                    let first = extreme(format, mode, s[0], s[1], false);
                    return extreme(format, mode, first, s[2], false);
                }
                three.sort_by_key(|bits| place(format, *bits));
                three[1]
            });
        }
    }
}
