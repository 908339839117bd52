//! Minimum, maximum and median of floating-point numbers.
//!
//! Minus zero is less than plus zero. A quiet NaN loses against a number. With IEEE mode on, a
//! signalling NaN wins and becomes quiet (ISA manual, `V_MIN_F32`, `V_MED3_F32`).

use crate::execute::lane::Float;
use crate::wave::Mode;

/// The lesser of two.
#[inline(always)]
pub(super) fn minimum<T: Float>(a: T, b: T, mode: Mode) -> T {
    let lesser = if b.above(a) | (!a.above(b) & a.negative()) { a } else { b };
    choose(a, b, lesser, mode)
}

/// The greater of two.
#[inline(always)]
pub(super) fn maximum<T: Float>(a: T, b: T, mode: Mode) -> T {
    let greater = if a.above(b) | (!b.above(a) & b.negative()) { a } else { b };
    choose(a, b, greater, mode)
}

/// The one in the middle: the maximum without one that equals the greatest, where zeros of both
/// signs are equal. The minimum if one is a NaN.
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
