//! Magnitudes of a product's elements, and the conclusions for its sums: if no sum can overflow,
//! become denormal or need more bits, it is computed in fewer steps with the same bits.

use crate::execute::lane::small_float::{SmallFloat, power};

/// Range of the magnitudes of elements.
#[derive(Clone, Copy)]
pub struct Sizes {
    /// Bits of the greatest magnitude.
    pub greatest: u32,
    /// Bits of the smallest magnitude that is not zero; all ones if there is none.
    pub least: u32,
}

impl Sizes {
    /// Range of some numbers.
    #[inline(always)]
    pub fn of(values: &[f32]) -> Sizes {
        let (mut greatest, mut less_one) = (0, u32::MAX);
        for value in values {
            let magnitude = value.to_bits() & 0x7fff_ffff;
            greatest = greatest.max(magnitude);
            // After subtracting one, zeros are the greatest values.
            less_one = less_one.min(magnitude.wrapping_sub(1));
        }
        Sizes { greatest, least: less_one.saturating_add(1) }
    }
}

/// Precision of elements.
#[derive(Clone, Copy)]
pub struct Digits {
    /// Exponent of the smallest normal number; the least and the greatest one if elements have
    /// different scales.
    pub least_exponent: (i32, i32),
    /// Number of places after the point.
    pub places: i32,
}

impl Digits {
    /// Precision of single precision truncated to 19 bits.
    pub const XF32: Digits = Digits { least_exponent: (-126, -126), places: 10 };

    /// Precision of a format of 16 bits or less.
    pub const fn of(format: SmallFloat) -> Digits {
        let least_exponent = (format.least_exponent(), format.least_exponent());
        Digits { least_exponent, places: format.mantissa as i32 }
    }

    /// Precision of elements multiplied by powers of two with exponents in this range.
    #[cfg(target_arch = "x86_64")]
    pub fn scaled(self, (least, greatest): (i32, i32)) -> Digits {
        let (low, high) = self.least_exponent;
        Digits { least_exponent: (low + least, high + greatest), ..self }
    }
}

/// Common unit and magnitude of the products of elements.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// Ranges of the elements of A and of B.
    sizes: [Sizes; 2],
    /// Sum of the exponents of the greatest elements.
    greatest: i32,
    /// Exponent of the unit of which all products are multiples.
    unit: i32,
}

/// Least exponent of a product that is not zero, for sums that are aligned or added in groups.
pub const LEAST_OF_PRODUCT: i32 = -66;

fn exponent(bits: u32) -> i32 {
    (bits >> 23) as i32 - 127
}

impl Bounds {
    /// Bounds for elements with these digits and sizes.
    pub fn of(digits: [Digits; 2], sizes: [Sizes; 2]) -> Bounds {
        let sum = |of_side: &dyn Fn(Digits, Sizes) -> i32| -> i32 {
            digits.into_iter().zip(sizes).map(|(digits, sizes)| of_side(digits, sizes)).sum()
        };
        Bounds {
            sizes,
            greatest: sum(&|digits, sizes| exponent(sizes.greatest).max(digits.least_exponent.1)),
            unit: sum(&|digits, sizes| {
                exponent(sizes.least).max(digits.least_exponent.0) - digits.places
            }),
        }
    }

    /// Returns `true` if both sides have elements other than zero.
    fn are_some(&self) -> bool {
        self.sizes.iter().all(|size| size.greatest != 0)
    }

    /// Returns `true` if sums rounded to single precision are neither infinite nor denormal.
    pub fn are_moderate(&self) -> bool {
        !self.are_some() || self.unit >= -100 && self.greatest <= 120
    }

    /// Returns `true` if the powers of two of the exponents are single-precision numbers.
    pub fn are_tame(&self) -> bool {
        let least: i32 = self.sizes.iter().map(|size| exponent(size.least)).sum();
        let are_finite = self.sizes.iter().all(|size| size.greatest < 0x7f80_0000);
        are_finite && self.greatest <= 40 && (!self.are_some() || least >= LEAST_OF_PRODUCT)
    }

    /// Limits within which groups of this size can be added at once; `None` if they cannot.
    pub fn limits(&self, group: usize) -> Option<Limits> {
        let [a, b] = self.sizes.map(|size| f64::from(f32::from_bits(size.greatest)));
        let Bounds { greatest, unit, .. } = *self;
        let holds = group as f64 * a * b <= power(24 + unit);
        let fit = self.are_some() && holds && greatest - unit <= 24 && greatest <= 24;
        fit.then(|| Limits { per_unit: power(24 - greatest) as f32, end: power(unit + 31) as f32 })
    }
}

/// Conditions under which the sum of products and a sum so far is exact except for one rounding. If
/// they hold for an element of C, they hold for all sums so far: all products are multiples of the
/// unit, and so are the sums, since rounding only makes them multiples of greater powers of two;
/// and each group of products, of which there are at most 32, contributes at most 1 / 128 of `end`.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Number of units per one: the sum so far times this is an integer.
    pub per_unit: f32,
    /// Upper bound of the magnitude of an element of C, so that a sum so far stays below twice
    /// this.
    pub end: f32,
}

impl Limits {
    /// Returns `true` if the limits hold for elements of C, given as bits.
    #[inline(always)]
    pub fn hold(&self, bits: &[u32]) -> bool {
        bits.iter().fold(true, |hold, bits| {
            let value = f32::from_bits(*bits);
            let units = value * self.per_unit;
            hold & (units == units.trunc()) & (value.abs() < self.end)
        })
    }
}
