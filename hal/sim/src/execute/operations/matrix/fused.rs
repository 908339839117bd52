//! Sums of products as fixed-point numbers aligned to the greatest exponent, as CDNA 3 computes
//! them for elements of less than single precision. The source is the same as in
//! [`super::element`]: MMA-Sim's `amd_fused_dot_rd_add`, modelled on measurements of gfx942.

use crate::execute::lane::small_float::{SmallFloat, power};
use crate::execute::lane::{LaneValue, settle};
use crate::execute::matrix_sum::Steps;

/// Bits of a significand after the point.
pub const PLACES: u32 = 10;
/// The exponent of zeros and of single precision's denormals.
pub const ZERO_EXPONENT: i32 = -126;

/// An element of A or B.
#[derive(Clone, Copy, Default)]
pub struct Factor {
    /// Value of the element.
    pub value: f32,
    /// Signed significand with [`PLACES`] places after the point. Denormals have the exponent of
    /// the smallest normal number of their format, zeros the least exponent of single precision.
    pub significand: i32,
    /// Exponent of the significand.
    pub exponent: i32,
}

impl Factor {
    /// Decodes an element of a format of 16 bits or less.
    #[inline(always)]
    pub fn of(format: SmallFloat, bits: u32) -> Factor {
        Factor::parts(format.decode(bits), format.least_exponent())
    }

    /// Truncates single precision by the last 13 bits of its mantissa (`xf32`).
    #[inline(always)]
    pub fn truncated(bits: u32) -> Factor {
        Factor::parts(f32::from_bits(bits & !0x1fff), -126)
    }

    /// Creates a finite number from its significand and exponent.
    pub fn finite(significand: i32, exponent: i32) -> Factor {
        let value = f64::from(significand) * power(exponent - PLACES as i32);
        Factor { value: value as f32, significand, exponent }
    }

    /// Creates a factor from an integer.
    #[inline(always)]
    pub fn integer(value: i32) -> Factor {
        Factor { significand: value, ..Factor::default() }
    }

    #[inline(always)]
    fn parts(value: f32, least: i32) -> Factor {
        let bits = value.to_bits();
        let field = (bits >> 23 & 0xff) as i32;
        let fraction = bits & 0x7f_ffff;
        let digits = if field == 0 { fraction } else { fraction | 1 << 23 };
        let unclamped = field.max(1) - 127;
        let exponent = if digits == 0 { ZERO_EXPONENT } else { unclamped.max(least) };
        let places = (digits >> (23 - PLACES)) >> (exponent - unclamped).min(31);
        let significand = if bits >> 31 != 0 { -(places as i32) } else { places as i32 };
        Factor { value, significand, exponent }
    }
}

/// Alignment of the products of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// All products are aligned together.
    Together,
    /// Even and odd products are aligned separately, as for 8-bit elements.
    EvenAndOdd,
}

/// Significand of a product with 24 places, and its exponent.
type Part = (i64, i32);

/// Adds products to the sum so far: products are truncated to 24 places towards zero, their sum to
/// 31 and the sum so far to 24, both downwards. The result is rounded to nearest even. `scale` is
/// added to the exponents of all products.
#[inline(always)]
pub fn sum(
    rule: Rule,
    factors: impl Iterator<Item = (Factor, Factor)> + Clone,
    scale: i32,
    before: f32,
) -> f32 {
    // Infinities, NaNs, and products that single precision does not represent.
    let is_special = |(a, b): (Factor, Factor)| !(a.value * b.value).is_finite();
    if !before.is_finite() || factors.clone().any(is_special) {
        let sources = factors.clone().flat_map(|(a, b)| [a.value, b.value]).chain([before]);
        return special(factors.map(|(a, b)| numbers(a, b, scale)), sources, before);
    }
    total(rule, factors.map(|(a, b)| part(a, b, scale)), before)
}

/// Sums all products of an element in groups, step by step; `scale` returns the exponent of the
/// products from a step on. A product is passed in single precision; a changed product is added as
/// that number.
pub fn sum_by_steps(
    rule: Rule,
    group: usize,
    factors: &[(Factor, Factor)],
    scale: impl Fn(usize) -> i32,
    before: f32,
    steps: &mut Steps<'_>,
) -> f32 {
    let mut so_far = steps.begin(before);
    for (number, factors) in factors.chunks(group).enumerate() {
        let first = number * group;
        let scale = scale(first);
        let mut changed = Vec::new();
        for (step, (a, b)) in (first..).zip(factors.iter().copied()) {
            changed.push(((a, b), steps.product(step, product(a, b, scale))));
        }
        so_far = if changed.iter().any(|(_, product)| product.is_some()) {
            sum_of_changed(rule, &changed, scale, so_far)
        } else {
            sum(rule, factors.iter().copied(), scale, so_far)
        };
        so_far = steps.sum(first + factors.len() - 1, so_far);
    }
    so_far
}

/// A product in single precision.
fn product(a: Factor, b: Factor, scale: i32) -> f32 {
    let first_nan = [a.value, b.value].into_iter().find_map(LaneValue::quiet_nan);
    settle(numbers(a, b, scale)[1] as f32, first_nan)
}

/// Like [`sum`], with some products replaced by numbers.
fn sum_of_changed(
    rule: Rule,
    products: &[((Factor, Factor), Option<f32>)],
    scale: i32,
    before: f32,
) -> f32 {
    let is_special = |((a, b), changed): &((Factor, Factor), Option<f32>)| {
        !changed.unwrap_or(a.value * b.value).is_finite()
    };
    if !before.is_finite() || products.iter().any(is_special) {
        let changed_products = products.iter().map(|((a, b), changed)| match changed {
            Some(number) => [f64::from(*number); 2],
            None => numbers(*a, *b, scale),
        });
        let sources = products.iter().flat_map(|((a, b), changed)| match changed {
            Some(number) => [*number; 2],
            None => [a.value, b.value],
        });
        return special(changed_products, sources.chain([before]), before);
    }
    let parts = products.iter().map(|((a, b), changed)| match changed {
        Some(number) => part_of(*number),
        None => part(*a, *b, scale),
    });
    total(rule, parts, before)
}

/// Significand and exponent of a finite product.
#[inline(always)]
fn part(a: Factor, b: Factor, scale: i32) -> Part {
    let digits = i64::from(a.significand) * i64::from(b.significand);
    (digits << (24 - 2 * PLACES), a.exponent + b.exponent + scale)
}

/// Converts a finite single-precision number to a product. A zero has the least exponent.
fn part_of(number: f32) -> Part {
    let (significand, exponent) = parts_of_single(number);
    (significand << 1, if significand == 0 { 2 * ZERO_EXPONENT } else { exponent })
}

/// Signed significand of a finite number with 23 places after the point, and its exponent. A zero
/// has the least exponent, that of a denormal.
#[inline(always)]
fn parts_of_single(number: f32) -> Part {
    let bits = number.to_bits();
    let field = (bits >> 23 & 0xff) as i32;
    let magnitude = i64::from(bits & 0x7f_ffff | if field == 0 { 0 } else { 1 << 23 });
    let significand = if number.is_sign_negative() { -magnitude } else { magnitude };
    (significand, field.max(1) - 127)
}

/// Sum of finite products and the finite sum so far.
#[inline(always)]
fn total(rule: Rule, parts: impl Iterator<Item = Part> + Clone, before: f32) -> f32 {
    let (significand, exponent) = parts_of_single(before);
    let ((sum, greatest), has_all) = match rule {
        Rule::Together => (aligned(parts), true),
        Rule::EvenAndOdd => {
            let (even, odd) =
                (aligned(parts.clone().step_by(2)), aligned(parts.skip(1).step_by(2)));
            let top = even.1.max(odd.1);
            let sum = down(even.0, top - even.1) + down(odd.0, top - odd.1);
            ((sum, top), exponent >= top.max(exponent) - 25)
        }
    };
    let top = greatest.max(exponent);
    let third = if has_all { down(significand << 1, top - exponent) << 7 } else { 0 };
    let sum = down(sum << 7, top - greatest) + third;
    // Exact: the sum has fewer than 53 bits, and the exponents fit double precision.
    (sum as f64 * power(top - 31)) as f32
}

/// Truncates parts towards zero and adds them; the result has the greatest exponent.
#[inline(always)]
fn aligned(parts: impl Iterator<Item = Part> + Clone) -> Part {
    let greatest = parts.clone().map(|(_, exponent)| exponent).max().unwrap_or(2 * ZERO_EXPONENT);
    let sum = parts
        .map(|(digits, exponent)| {
            let distance = (greatest - exponent) as u32;
            // A division by a power of two that rounds towards zero.
            let below_zero = digits >> 63 & ((1 << distance.min(40)) - 1);
            if distance < 40 { (digits + below_zero) >> distance } else { 0 }
        })
        .sum();
    (sum, greatest)
}

/// Shifts right, rounding downwards.
#[inline(always)]
fn down(digits: i64, distance: i32) -> i64 {
    digits >> distance.min(63)
}

/// A product without and with its scale.
#[inline(always)]
fn numbers(a: Factor, b: Factor, scale: i32) -> [f64; 2] {
    let product = f64::from(a.value) * f64::from(b.value);
    [product, product * power(scale)]
}

/// Sum with operands that are not all finite, for products as returned by [`numbers`]. Finite
/// products beyond single precision count as infinite when added to finite numbers. The result is
/// the first source NaN, if any.
#[cold]
#[inline(never)]
fn special(
    products: impl Iterator<Item = [f64; 2]> + Clone,
    mut sources: impl Iterator<Item = f32>,
    before: f32,
) -> f32 {
    let wide = products.clone().map(|[_, scaled]| scaled).sum::<f64>();
    let wide = wide + f64::from(before);
    let sum = if wide.is_finite() {
        let narrow = products.map(|[product, _]| product as f32);
        narrow.filter(|product| !product.is_finite()).sum()
    } else {
        wide as f32
    };
    settle(sum, sources.find_map(LaneValue::quiet_nan))
}
