//! How great the elements of a product are, and what follows of that for its sums: where none of them can
//! become too great, too small or too long, they are made in fewer steps, and have the same bits.

use crate::execute::lane::small_float::{SmallFloat, power};

/// How great elements are.
#[derive(Clone, Copy)]
pub struct Sizes {
    /// Bits of the greatest magnitude.
    pub greatest: u32,
    /// Bits of the least magnitude that is not zero; all ones if there is none.
    pub least: u32,
}

impl Sizes {
    /// Those of some numbers.
    #[inline(always)]
    pub fn of(values: &[f32]) -> Sizes {
        let (mut greatest, mut less_one) = (0, u32::MAX);
        for value in values {
            let magnitude = value.to_bits() & 0x7fff_ffff;
            greatest = greatest.max(magnitude);
            // Zeros are the greatest of all.
            less_one = less_one.min(magnitude.wrapping_sub(1));
        }
        Sizes { greatest, least: less_one.saturating_add(1) }
    }
}

/// The digits of elements.
#[derive(Clone, Copy)]
pub struct Digits {
    /// The exponent of the least normal number.
    pub least_exponent: i32,
    /// How many there are after the point.
    pub places: i32,
}

impl Digits {
    /// Those of single precision of which 19 bits count.
    pub const XF32: Digits = Digits { least_exponent: -126, places: 10 };

    /// Those of a format of 16 bits or less.
    pub const fn of(format: SmallFloat) -> Digits {
        Digits { least_exponent: format.least_exponent(), places: format.mantissa as i32 }
    }
}

/// What the products of elements are multiples of, and how great they are.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// Of elements of A and of B.
    sizes: [Sizes; 2],
    /// The sum of the exponents of the greatest ones.
    greatest: i32,
    /// The exponent of what all products are multiples of.
    unit: i32,
}

/// The least exponent of a product that is not zero, for sums that are aligned or made together.
pub const LEAST_OF_PRODUCT: i32 = -66;

fn exponent(bits: u32) -> i32 {
    (bits >> 23) as i32 - 127
}

impl Bounds {
    /// Those of elements with these digits and sizes.
    pub fn of(digits: [Digits; 2], sizes: [Sizes; 2]) -> Bounds {
        let sum = |of_side: &dyn Fn(Digits, Sizes) -> i32| -> i32 {
            digits.into_iter().zip(sizes).map(|(digits, sizes)| of_side(digits, sizes)).sum()
        };
        Bounds {
            sizes,
            greatest: sum(&|own, sizes| exponent(sizes.greatest).max(own.least_exponent)),
            unit: sum(&|own, sizes| exponent(sizes.least).max(own.least_exponent) - own.places),
        }
    }

    /// Whether neither side has nothing but zeros.
    fn are_some(&self) -> bool {
        self.sizes.iter().all(|own| own.greatest != 0)
    }

    /// Whether sums of them, rounded to single precision, are neither infinite nor denormal.
    pub fn are_moderate(&self) -> bool {
        !self.are_some() || self.unit >= -100 && self.greatest <= 120
    }

    /// Whether powers of two that go with them are numbers of single precision.
    pub fn are_tame(&self) -> bool {
        let least: i32 = self.sizes.iter().map(|own| exponent(own.least)).sum();
        let are_finite = self.sizes.iter().all(|own| own.greatest < 0x7f80_0000);
        are_finite && self.greatest <= 40 && (!self.are_some() || least >= LEAST_OF_PRODUCT)
    }

    /// The limits within which groups of so many can be added together; nothing if they cannot.
    pub fn limits(&self, group: usize) -> Option<Limits> {
        let [a, b] = self.sizes.map(|own| f64::from(f32::from_bits(own.greatest)));
        let Bounds { greatest, unit, .. } = *self;
        let holds = group as f64 * a * b <= power(24 + unit);
        let fit = self.are_some() && holds && greatest - unit <= 24 && greatest <= 24;
        fit.then(|| Limits { per_unit: power(24 - greatest) as f32, end: power(unit + 31) as f32 })
    }
}

/// What makes a sum of products and of a sum so far lose nothing but what one rounding takes. Where it
/// holds of an element of C, it does of all sums so far: all products are multiples of the unit, so that
/// sums, which rounding makes multiples of greater powers of two if of any others, are multiples of it;
/// and groups of products, of which there are 32 at most, come to 1 / 128 of the end each at most.
#[derive(Clone, Copy)]
pub struct Limits {
    /// The sum so far is a multiple of one by this.
    pub per_unit: f32,
    /// The magnitude of an element of C is less, so that that of a sum so far is less than twice this.
    pub end: f32,
}

impl Limits {
    /// Whether they hold of elements of C, which are given by their bits.
    #[inline(always)]
    pub fn hold(&self, bits: &[u32]) -> bool {
        bits.iter().fold(true, |hold, bits| {
            let value = f32::from_bits(*bits);
            let units = value * self.per_unit;
            hold & (units == units.trunc()) & (value.abs() < self.end)
        })
    }
}
