//! One element of a matrix product, summed step by step, so that the parts of its sum can be
//! observed and changed: C as it enters the sum, each product, and the sum after each step.
//!
//! This is the arithmetic of the whole products in [`operations`](super::operations), one element
//! at a time and without their optimizations: if nothing is changed, the bits are the same.

use crate::execute::lane::{LaneValue, settle};
use crate::wave::{RowIndex, Wave};
use std::fmt;

/// A part of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SumPart {
    /// The element of C as it enters the sum, with its modifiers, in the type of the sum. There is
    /// one, at step 0.
    Accumulator,
    /// A product of an element of A and one of B, in the type of the sum. Step k is the k-th
    /// product of the sum, starting at 0; a sparse A has only products of its stored elements.
    Product,
    /// The partial sum that includes the products up to this step.
    PartialSum,
}

/// Data type of an operation's sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumType {
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// 32-bit integers.
    I32,
}

/// Position of an element of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MatrixElement {
    /// Number of the matrix among the independent blocks of an instruction, starting at 0.
    pub block: u8,
    /// Row in the matrix.
    pub row: u8,
    /// Column in the matrix.
    pub column: u8,
}

/// Dimensions of the product that a matrix instruction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductShape {
    /// Number of independent matrices.
    pub blocks: u8,
    /// Rows of each matrix.
    pub rows: u8,
    /// Columns of each matrix.
    pub columns: u8,
    /// Products per sum.
    pub products: u8,
    /// Products that are added at a time: partial sums exist after each group, and after all
    /// products.
    pub group: u8,
    /// Data type of the sums.
    pub sum: SumType,
}

impl ProductShape {
    /// A square matrix of `size` rows and columns, with `products` products per sum.
    pub(crate) const fn square(size: usize, products: usize) -> ProductShape {
        let (size, products) = (size as u8, products as u8);
        let sum = SumType::F32;
        ProductShape { blocks: 1, rows: size, columns: size, products, group: 1, sum }
    }

    /// Returns `true` if the element lies in the result.
    pub fn has(&self, element: MatrixElement) -> bool {
        let MatrixElement { block, row, column } = element;
        block < self.blocks && row < self.rows && column < self.columns
    }

    /// Steps at which a sum has this part, in order.
    pub fn steps(&self, part: SumPart) -> impl Iterator<Item = u8> + use<> {
        let ProductShape { products, group, .. } = *self;
        let steps = if part == SumPart::Accumulator { 1 } else { products };
        (0..steps).filter(move |step| {
            part != SumPart::PartialSum || (step + 1) % group == 0 || step + 1 == products
        })
    }

    /// 32-bit words of a sum.
    pub fn words(&self) -> u8 {
        if self.sum == SumType::F64 { 2 } else { 1 }
    }
}

impl fmt::Display for ProductShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProductShape { blocks, rows, columns, products, group, .. } = self;
        write!(f, "{rows} rows, {columns} columns, {blocks} block(s), {products} products a sum")?;
        match group {
            1 => f.write_str(", each with a partial sum"),
            _ => write!(f, ", with a partial sum after each {group}"),
        }
    }
}

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
