//! Comparisons (PTX ISA, "Comparison and Selection Instructions").

use super::float::{Rounding, format_of};
use super::row::{Compute, each, one, pair, signed};
use super::small_float::Format;
use crate::Gap;
use flipwave_ptx::{Form, ScalarType};
use std::cmp::Ordering;

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    /// Orders for which the comparison is true, and its value for unordered numbers.
    Order { less: bool, equal: bool, greater: bool, unordered: bool },
    /// `num`: both are numbers.
    Numbers,
    /// `nan`: one is a NaN.
    Nan,
}

/// The names of comparisons. Those of floating-point numbers end in `u` if they hold for unordered numbers.
fn comparison(name: &str, is_float: bool) -> Option<Comparison> {
    let order = |less, equal, greater, unordered| {
        Some(Comparison::Order { less, equal, greater, unordered })
    };
    match name {
        "eq" => order(false, true, false, false),
        "ne" => order(true, false, true, false),
        "lt" | "lo" => order(true, false, false, false),
        "le" | "ls" => order(true, true, false, false),
        "gt" | "hi" => order(false, false, true, false),
        "ge" | "hs" => order(false, true, true, false),
        "equ" if is_float => order(false, true, false, true),
        "neu" if is_float => order(true, false, true, true),
        "ltu" if is_float => order(true, false, false, true),
        "leu" if is_float => order(true, true, false, true),
        "gtu" if is_float => order(false, false, true, true),
        "geu" if is_float => order(false, true, true, true),
        "num" if is_float => Some(Comparison::Numbers),
        "nan" if is_float => Some(Comparison::Nan),
        _ => None,
    }
}

impl Comparison {
    /// The value for an order; `None` is that of unordered numbers.
    fn holds(self, found: Option<Ordering>) -> bool {
        match (self, found) {
            (Comparison::Order { less, .. }, Some(Ordering::Less)) => less,
            (Comparison::Order { equal, .. }, Some(Ordering::Equal)) => equal,
            (Comparison::Order { greater, .. }, Some(Ordering::Greater)) => greater,
            (Comparison::Order { unordered, .. }, None) => unordered,
            (Comparison::Numbers, found) => found.is_some(),
            (Comparison::Nan, found) => found.is_none(),
        }
    }
}

/// Compares two values of a type.
fn comparer(
    form: &Form,
    kind: ScalarType,
) -> Result<impl Fn(u64, u64) -> bool + Copy + Send + Sync + 'static, Gap> {
    let format = format_of(kind);
    let name = form.modifiers().next().unwrap_or_default();
    let comparison = comparison(name, format.is_some()).ok_or_else(Gap::form)?;
    let rounding = Rounding::of(form);
    let (bits, is_signed) = (kind.bits(), kind.is_signed());
    Ok(move |a: u64, b: u64| {
        let order = match format {
            Some(format) => {
                let [a, b] = [a, b].map(|bits| rounding.operand(format, bits));
                order(format, a, b)
            }
            None if is_signed => Some(signed(a, bits).cmp(&signed(b, bits))),
            None => Some(a.cmp(&b)),
        };
        comparison.holds(order)
    })
}

/// The order of two floating-point numbers; `None` if one is a NaN.
fn order(format: Format, a: u64, b: u64) -> Option<Ordering> {
    if format.is_nan(a) || format.is_nan(b) {
        return None;
    }
    let is_zero = |bits: u64| bits & !format.sign() == 0;
    if is_zero(a) && is_zero(b) {
        return Some(Ordering::Equal);
    }
    Some(format.order(a).cmp(&format.order(b)))
}

/// Operation that combines a comparison with a predicate; `None` for a plain comparison.
fn combination(form: &Form) -> Option<fn(bool, bool) -> bool> {
    form.modifiers().find_map(|modifier| -> Option<fn(bool, bool) -> bool> {
        match modifier {
            "and" => Some(|a, b| a & b),
            "or" => Some(|a, b| a | b),
            "xor" => Some(|a, b| a ^ b),
            _ => None,
        }
    })
}

/// `setp`: the second result is the inverse comparison, combined with the same predicate.
pub(super) fn compute(form: &Form) -> Result<Compute, Gap> {
    let kind = form.source().ok_or_else(Gap::form)?;
    let combined = combination(form);
    let combine = move |value: bool, predicate: u64| match combined {
        Some(combined) => u64::from(combined(value, predicate & 1 != 0)),
        None => u64::from(value),
    };
    if let ScalarType::F16x2 | ScalarType::Bf16x2 = kind {
        let part = if kind == ScalarType::F16x2 { ScalarType::F16 } else { ScalarType::Bf16 };
        let compare = comparer(form, part)?;
        return Ok(pair(move |[a, b, predicate]: [u64; 3]| {
            [compare(a & 0xffff, b & 0xffff), compare(a >> 16, b >> 16)]
                .map(|value| combine(value, predicate))
        }));
    }
    let compare = comparer(form, kind)?;
    Ok(pair(move |[a, b, predicate]: [u64; 3]| {
        let value = compare(a, b);
        [combine(value, predicate), combine(!value, predicate)]
    }))
}

/// `set`: all ones or 1.0 where the comparison holds.
pub(super) fn set(form: &Form) -> Result<Compute, Gap> {
    let [result, source] = form.types[..] else { return Err(Gap::form()) };
    let combined = combination(form);
    let truth = match (result, format_of(result)) {
        (ScalarType::F16x2 | ScalarType::Bf16x2, _) => return set_halves(form, result, source),
        (_, Some(format)) => format.one(),
        _ => u64::MAX,
    };
    if matches!(source, ScalarType::F16x2 | ScalarType::Bf16x2) {
        return set_halves(form, result, source);
    }
    let compare = comparer(form, source)?;
    Ok(each(move |[a, b, predicate]: [u64; 3]| {
        let value = compare(a, b);
        let value = combined.map_or(value, |combined| combined(value, predicate & 1 != 0));
        if value { truth } else { 0 }
    }))
}

fn set_halves(form: &Form, result: ScalarType, source: ScalarType) -> Result<Compute, Gap> {
    let part = match source {
        ScalarType::F16x2 => ScalarType::F16,
        ScalarType::Bf16x2 => ScalarType::Bf16,
        _ => return Err(Gap::form()),
    };
    let compare = comparer(form, part)?;
    let combined = combination(form);
    let truth = format_of(result).map_or(0xffff, Format::one);
    Ok(each(move |[a, b, predicate]: [u64; 3]| {
        let half = |shift: u32| {
            let value = compare(a >> shift & 0xffff, b >> shift & 0xffff);
            let value = combined.map_or(value, |combined| combined(value, predicate & 1 != 0));
            if value { truth << shift } else { 0 }
        };
        half(0) | half(16)
    }))
}

/// `testp`.
pub(super) fn test_property(form: &Form) -> Result<Compute, Gap> {
    let format = form.source().and_then(format_of).ok_or_else(Gap::form)?;
    let property: fn(Format, u64) -> bool = match form.modifiers().next() {
        Some("finite") => |format, bits| bits & !format.sign() < format.infinity(),
        Some("infinite") => |format, bits| bits & !format.sign() == format.infinity(),
        Some("number") => |format, bits| !format.is_nan(bits),
        Some("notanumber") => Format::is_nan,
        Some("normal") => |format, bits| {
            let magnitude = bits & !format.sign();
            magnitude < format.infinity() && magnitude & format.infinity() != 0
        },
        Some("subnormal") => Format::is_subnormal,
        _ => return Err(Gap::form()),
    };
    Ok(one(move |a| u64::from(property(format, a))))
}
