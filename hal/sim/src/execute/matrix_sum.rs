//! One element of a matrix product, summed step by step, so that the parts of its sum can be
//! observed and changed: C as it enters the sum, each product, and the sum after each step.
//!
//! This is the arithmetic of the whole products in [`operations`](super::operations), one element
//! at a time and without their optimizations: if nothing is changed, the bits are the same.

use crate::execute::lane::{LaneValue, settle};
use crate::wave::{RowIndex, Wave};
use flipwave_arch::SumPart;

/// A computed element of the result, and its location in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummedElement {
    pub(crate) lane: usize,
    pub(crate) row: RowIndex,
    /// Width of the element in the register, starting at bit `shift`.
    pub(crate) bits: u32,
    pub(crate) shift: u32,
    pub(crate) value: u64,
}

impl SummedElement {
    /// An element of `words` whole words.
    pub(crate) fn words(row: RowIndex, lane: usize, words: usize, value: u64) -> SummedElement {
        SummedElement { lane, row, bits: 32 * words as u32, shift: 0, value }
    }

    /// Writes the element to its registers; returns `true` if any bit changed.
    pub(crate) fn write(&self, wave: &mut Wave) -> bool {
        let SummedElement { lane, row, bits, shift, value } = *self;
        let mask = u64::MAX >> (64 - bits) << shift;
        let mut is_changed = false;
        for word in 0..bits.div_ceil(32) {
            let held = &mut wave.row_mut(row.plus(word as u16)).0[lane];
            let [mask, value] = [mask, value << shift].map(|all| (all >> (32 * word)) as u32);
            let wanted = *held & !mask | value & mask;
            is_changed |= *held != wanted;
            *held = wanted;
        }
        is_changed
    }
}

/// Callback for the parts of a sum: takes the part, its step and its bits, and returns the bits
/// that the sum continues with.
pub type Touch<'a> = dyn FnMut(SumPart, u8, u64) -> u64 + 'a;

/// A number in a data type of sums.
pub trait Number: Copy {
    /// Bits of the number.
    fn to_bits(self) -> u64;
    /// Number with these bits.
    fn of_bits(bits: u64) -> Self;
}

impl Number for f32 {
    fn to_bits(self) -> u64 {
        f32::to_bits(self).into()
    }
    fn of_bits(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
}

impl Number for f64 {
    fn to_bits(self) -> u64 {
        f64::to_bits(self)
    }
    fn of_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
}

impl Number for i32 {
    fn to_bits(self) -> u64 {
        (self as u32).into()
    }
    fn of_bits(bits: u64) -> i32 {
        bits as i32
    }
}

/// Passes the parts of one sum to a callback.
pub struct Steps<'a> {
    touch: &'a mut Touch<'a>,
}

impl<'a> Steps<'a> {
    /// Passes the parts to `touch`.
    pub fn new(touch: &'a mut Touch<'a>) -> Steps<'a> {
        Steps { touch }
    }

    /// Passes C.
    pub fn begin<T: Number>(&mut self, value: T) -> T {
        self.changed(SumPart::Accumulator, 0, value).unwrap_or(value)
    }

    /// Passes a product, and returns it if it was changed. Unchanged products are not returned
    /// because sums that do not round products would otherwise have to round them first.
    pub fn product<T: Number>(&mut self, step: usize, value: T) -> Option<T> {
        self.changed(SumPart::Product, step, value)
    }

    /// Passes the sum after a step.
    pub fn sum<T: Number>(&mut self, step: usize, value: T) -> T {
        self.changed(SumPart::PartialSum, step, value).unwrap_or(value)
    }

    fn changed<T: Number>(&mut self, part: SumPart, step: usize, value: T) -> Option<T> {
        let after = (self.touch)(part, step as u8, value.to_bits());
        (after != value.to_bits()).then(|| T::of_bits(after))
    }
}

/// Sums by a chain of fused multiply-adds in the order of the factors. A product that was changed
/// is rounded, and so is its addition to the sum.
pub fn chain<T>(factors: impl Iterator<Item = [T; 2]>, initial: T, steps: &mut Steps<'_>) -> T
where
    T: Number + Fused,
{
    let mut sum = steps.begin(initial);
    for (step, [a, b]) in factors.enumerate() {
        sum = link(step, [a, b], sum, steps);
        sum = steps.sum(step, sum);
    }
    sum
}

/// One link of [`chain`], without passing its partial sum.
pub fn link<T: Number + Fused>(step: usize, [a, b]: [T; 2], sum: T, steps: &mut Steps<'_>) -> T {
    match steps.product(step, T::times(a, b)) {
        None => T::fused(a, b, sum),
        Some(product) => T::plus(product, sum),
    }
}

/// Floating-point numbers in chains; the result is the first source that is a NaN.
pub trait Fused: Sized {
    /// a * b, rounded.
    fn times(a: Self, b: Self) -> Self;
    /// a + b, rounded.
    fn plus(a: Self, b: Self) -> Self;
    /// a * b + c, rounded once.
    fn fused(a: Self, b: Self, c: Self) -> Self;
}

macro_rules! fused {
    ($($number:ty)*) => {$(
        impl Fused for $number {
            fn times(a: $number, b: $number) -> $number {
                settle(a * b, [a, b].into_iter().find_map(LaneValue::quiet_nan))
            }
            fn plus(a: $number, b: $number) -> $number {
                settle(a + b, [a, b].into_iter().find_map(LaneValue::quiet_nan))
            }
            fn fused(a: $number, b: $number, c: $number) -> $number {
                settle(a.mul_add(b, c), [a, b, c].into_iter().find_map(LaneValue::quiet_nan))
            }
        }
    )*};
}

fused!(f32 f64);

/// Sums integers with wrap-around. If it `saturates`, the sum has more bits internally and is
/// clamped to 32 bits at the end; its parts are passed as their lowest 32 bits.
pub fn integers(
    products: impl Iterator<Item = i32>,
    initial: i32,
    saturates: bool,
    steps: &mut Steps<'_>,
) -> i32 {
    let mut sum = i64::from(steps.begin(initial));
    for (step, product) in products.enumerate() {
        sum += i64::from(steps.product(step, product).unwrap_or(product));
        let low = sum as i32;
        sum += i64::from(steps.sum(step, low)) - i64::from(low);
    }
    if saturates { sum.clamp(i32::MIN.into(), i32::MAX.into()) as i32 } else { sum as i32 }
}
