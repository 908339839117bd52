//! Minimum, maximum and median of floating-point numbers.
//!
//! Minus zero is less than plus zero. NaN rules:
//! - up to gfx11, a number is preferred to a quiet NaN; with IEEE mode on, a signalling NaN is the
//!   result, quieted (ISA manual, `V_MIN_F32`, `V_MED3_F32`);
//! - `num` (gfx12): a number is preferred to any NaN, and of two NaNs the first is the result,
//!   quieted (RDNA 4 ISA, `V_MIN_NUM_F32`; `minimumNumber` of IEEE 754-2019);
//! - `minimum` and `maximum` (gfx12): a NaN is the result, quieted, with a signalling NaN preferred
//!   to a quiet one (RDNA 4 ISA, `V_MINIMUM_F32`).

use crate::execute::lane::Float;
use crate::wave::Mode;

#[inline(always)]
fn lesser<T: Float>(a: T, b: T) -> T {
    if b.above(a) | (!a.above(b) & a.negative()) { a } else { b }
}

#[inline(always)]
fn greater<T: Float>(a: T, b: T) -> T {
    if a.above(b) | (!b.above(a) & b.negative()) { a } else { b }
}

/// The lesser of two.
#[inline(always)]
pub(super) fn minimum<T: Float>(a: T, b: T, mode: Mode) -> T {
    choose(a, b, lesser(a, b), mode)
}

/// The greater of two.
#[inline(always)]
pub(super) fn maximum<T: Float>(a: T, b: T, mode: Mode) -> T {
    choose(a, b, greater(a, b), mode)
}

/// The median: the maximum after removing one that equals the greatest, where zeros of both signs
/// are equal. The minimum if one is a NaN.
#[inline(always)]
pub(super) fn median<T: Float>(a: T, b: T, c: T, mode: Mode) -> T {
    let greatest = maximum(maximum(a, b, mode), c, mode);
    let is_greatest = |value: T| !greatest.above(value) & !value.above(greatest);
    let first = if is_greatest(a) { b } else { a };
    let second = if is_greatest(a) | is_greatest(b) { c } else { b };
    let middle = maximum(first, second, mode);
    let least = minimum(minimum(a, b, mode), c, mode);
    if a.nan() | b.nan() | c.nan() { least } else { middle }
}

/// The lesser number of two.
#[inline(always)]
pub fn minimum_number<T: Float>(a: T, b: T) -> T {
    choose_number(a, b, lesser(a, b))
}

/// The greater number of two.
#[inline(always)]
pub fn maximum_number<T: Float>(a: T, b: T) -> T {
    choose_number(a, b, greater(a, b))
}

/// The median; the minimum if one is a NaN.
#[inline(always)]
pub(super) fn median_number<T: Float>(a: T, b: T, c: T) -> T {
    let greatest = maximum_number(maximum_number(a, b), c);
    let is_greatest = |value: T| !greatest.above(value) & !value.above(greatest);
    let first = if is_greatest(a) { b } else { a };
    let second = if is_greatest(a) | is_greatest(b) { c } else { b };
    let middle = maximum_number(first, second);
    let least = minimum_number(minimum_number(a, b), c);
    if a.nan() | b.nan() | c.nan() { least } else { middle }
}

/// The lesser of two, or a NaN.
#[inline(always)]
pub(super) fn minimum_or_nan<T: Float>(a: T, b: T) -> T {
    choose_nan(a, b, lesser(a, b))
}

/// The greater of two, or a NaN.
#[inline(always)]
pub(super) fn maximum_or_nan<T: Float>(a: T, b: T) -> T {
    choose_nan(a, b, greater(a, b))
}

/// `number`, unless one of the two is a NaN: then the other operand.
#[inline(always)]
fn choose_number<T: Float>(a: T, b: T, number: T) -> T {
    match (a.nan(), b.nan()) {
        (true, true) => a.quieted(),
        (true, false) => b,
        (false, true) => a,
        (false, false) => number,
    }
}

/// `number`, unless one of the two is a NaN: then that NaN.
#[inline(always)]
fn choose_nan<T: Float>(a: T, b: T, number: T) -> T {
    if a.signalling() | (a.nan() & !b.signalling()) {
        a.quieted()
    } else if b.nan() {
        b.quieted()
    } else {
        number
    }
}

/// `number`, unless one of the two is a NaN.
#[inline(always)]
fn choose<T: Float>(a: T, b: T, number: T, mode: Mode) -> T {
    let ieee = mode.ieee();
    let quiet = if a.nan() {
        b
    } else if b.nan() {
        a
    } else {
        number
    };
    if ieee & a.signalling() {
        a.quieted()
    } else if ieee & b.signalling() {
        b.quieted()
    } else {
        quiet
    }
}
