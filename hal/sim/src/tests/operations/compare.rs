//! Comparisons, checked with an ordering of the bits.

use super::exact::{DOUBLE, Format, HALF, SINGLE};
use super::{
    DEFAULT_MODE, MODES, Outcome, Sources, differs, flushed_if, flushes, operation, samples,
};
use crate::wave::Mode;
use std::cmp::Ordering::{self, Equal, Greater, Less};

fn check(name: &str, reference: impl Fn(&Sources) -> bool) {
    check_in(DEFAULT_MODE, name, reference);
}

fn check_in(mode: Mode, name: &str, reference: impl Fn(&Sources) -> bool) {
    let samples = samples(operation(name), 2000);
    let expected = |sources: &Sources| Outcome { value: 0, mask: reference(sources) };
    if let Some(difference) = differs(name, mode, &samples, expected) {
        panic!("{difference}");
    }
}

/// Predicate of a comparison on the ordering of its operands.
type Holds = fn(Ordering) -> bool;

#[test]
pub fn integer_comparisons_match_reference() {
    let holds: [(&str, Holds); 8] = [
        ("f", |_| false),
        ("lt", |order| order == Less),
        ("eq", |order| order == Equal),
        ("le", |order| order != Greater),
        ("gt", |order| order == Greater),
        ("ne", |order| order != Equal),
        ("ge", |order| order != Less),
        ("t", |_| true),
    ];
    for (name, holds) in holds {
        for bits in [16, 32, 64] {
            check(&format!("v_cmp_{name}_u{bits}"), |s| holds(s[0].cmp(&s[1])));
            check(&format!("v_cmp_{name}_i{bits}"), |s| {
                // Flipping the sign bit makes the order of the bits that of the numbers.
                let moved = [s[0], s[1]].map(|value| (value << (64 - bits)) ^ 1 << 63);
                holds(moved[0].cmp(&moved[1]))
            });
        }
    }
}

fn order(format: Format, a: u64, b: u64) -> Option<Ordering> {
    if format.is_nan(a) || format.is_nan(b) {
        return None;
    }
    let place = |bits: u64| {
        let magnitude = i128::from(bits & !format.sign());
        if format.is_negative(bits) { -magnitude } else { magnitude }
    };
    Some(place(a).cmp(&place(b)))
}

#[test]
pub fn float_comparisons_match_reference() {
    let holds: [(&str, &[Option<Ordering>]); 16] = [
        ("f", &[]),
        ("lt", &[Some(Less)]),
        ("eq", &[Some(Equal)]),
        ("le", &[Some(Less), Some(Equal)]),
        ("gt", &[Some(Greater)]),
        ("lg", &[Some(Less), Some(Greater)]),
        ("ge", &[Some(Greater), Some(Equal)]),
        ("o", &[Some(Less), Some(Equal), Some(Greater)]),
        ("u", &[None]),
        ("nge", &[None, Some(Less)]),
        ("nlg", &[None, Some(Equal)]),
        ("ngt", &[None, Some(Less), Some(Equal)]),
        ("nle", &[None, Some(Greater)]),
        ("neq", &[None, Some(Less), Some(Greater)]),
        ("nlt", &[None, Some(Equal), Some(Greater)]),
        ("tru", &[None, Some(Less), Some(Equal), Some(Greater)]),
    ];
    for (suffix, format) in [("f16", HALF), ("f32", SINGLE), ("f64", DOUBLE)] {
        for (name, among) in holds {
            let name = format!("v_cmp_{name}_{suffix}");
            // Test the default mode, and a mode that flushes denormal sources.
            for mode in &MODES[..2] {
                let flush = flushes(format, *mode)[0];
                check_in(*mode, &name, |s| {
                    let [a, b] = [s[0], s[1]].map(|bits| flushed_if(flush, format, bits));
                    among.contains(&order(format, a, b))
                });
            }
        }
    }
}

#[test]
pub fn class_tests_match_reference() {
    for (suffix, format) in [("f16", HALF), ("f32", SINGLE), ("f64", DOUBLE)] {
        check(&format!("v_cmp_class_{suffix}"), |s| {
            let bits = s[0];
            let signed = |minus: u32, plus| if format.is_negative(bits) { minus } else { plus };
            let class = if format.is_nan(bits) {
                u32::from(bits & format.quiet_bit() != 0)
            } else if format.is_infinite(bits) {
                signed(2, 9)
            } else if format.is_zero(bits) {
                signed(5, 6)
            } else if format.is_denormal(bits) {
                signed(4, 7)
            } else {
                signed(3, 8)
            };
            s[1] >> class & 1 != 0
        });
    }
}
