//! Dot products of RDNA 3 and RDNA 4, which these chips compute not by steps of IEEE 754 but as one
//! sum of integers, in units of a power of two. The unit follows from the exponents of the factors
//! and of the third source, so that small terms lose bits (ROCm/rocm-systems issue 12056 and pull
//! request 12120, measured on gfx1151, gfx1100 and gfx1201).

use crate::execute::lane::Pair;
use crate::execute::lane::binary16::to_f32;
use crate::wave::Mode;
use half::f16;

/// A format of factors.
pub(super) struct Format {
    /// Bits of the fraction.
    fraction: i32,
    /// Exponent bias.
    bias: i32,
    /// `true` if RDNA 3 keeps denormals. RDNA 4 always does.
    keeps_denormals: bool,
}

/// Half precision.
pub(super) const HALF: Format = Format { fraction: 10, bias: 15, keeps_denormals: true };
/// Bfloat16.
pub(super) const BRAIN: Format = Format { fraction: 7, bias: 127, keeps_denormals: false };

/// Exponent of zero: below all others.
const NOTHING: i32 = -1024;
/// Result if a factor is a NaN.
const NAN_OF_FACTOR: u32 = 0xffc0_0a3d;
/// Result of an invalid product or sum.
const INVALID: u32 = 0xffc0_0000;

/// A number in units of `2^exponent`.
#[derive(Clone, Copy)]
struct Term {
    negative: bool,
    units: u64,
    exponent: i32,
}

impl Term {
    /// Exponent of the highest bit.
    fn top(self) -> i32 {
        match self.units.checked_ilog2() {
            Some(top) => self.exponent + top as i32,
            None => NOTHING,
        }
    }

    /// Converts a finite single-precision number.
    fn of_single(bits: u32, keeps_denormals: bool) -> Term {
        let field = bits >> 23 & 0xff;
        let fraction = bits & 0x7f_ffff;
        let units = match field {
            0 if keeps_denormals => fraction,
            0 => 0,
            _ => fraction | 1 << 23,
        };
        let exponent = field.max(1) as i32 - 127 - 23;
        Term { negative: bits >> 31 != 0, units: units.into(), exponent }
    }

    /// Magnitude truncated to units of `2^grid`.
    fn cut(self, grid: i32) -> i64 {
        shifted(self.units.into(), self.exponent - grid) as i64
    }

    /// Rounds down to units of `2^grid`.
    fn floor(self, grid: i32) -> i64 {
        let units = i128::from(self.units);
        shifted(if self.negative { -units } else { units }, self.exponent - grid) as i64
    }
}

/// A number times a power of two, truncated. The grid is never so fine that high bits are lost: it
/// is at most 26 places below the highest bit.
fn shifted(units: i128, places: i32) -> i128 {
    if places < 0 { units >> (-places).min(127) } else { units << places.min(63) }
}

/// A product of two factors.
#[derive(Clone, Copy)]
struct Product {
    term: Term,
    /// Sum of the factors' exponents; the exponent of the product may be one greater, or smaller if
    /// factors are denormal.
    exponent: i32,
}

/// A factor.
#[derive(Clone, Copy)]
struct Factor {
    negative: bool,
    significand: u64,
    exponent: i32,
    is_nan: bool,
    is_infinite: bool,
}

impl Factor {
    fn of(bits: u16, format: &Format, keeps_denormals: bool) -> Factor {
        let fraction_mask = (1u16 << format.fraction) - 1;
        let magnitude = bits & 0x7fff;
        let (field, fraction) = (magnitude >> format.fraction, magnitude & fraction_mask);
        let is_greatest = field == 0x7fff >> format.fraction;
        let significand = match field {
            0 if keeps_denormals => fraction,
            0 => 0,
            _ => fraction | 1 << format.fraction,
        };
        Factor {
            negative: bits >> 15 != 0,
            significand: significand.into(),
            exponent: i32::from(field.max(1)) - format.bias,
            is_nan: is_greatest && fraction != 0,
            is_infinite: is_greatest && fraction == 0,
        }
    }

    fn times(self, other: Factor, format: &Format) -> Product {
        let units = self.significand * other.significand;
        let exponent = self.exponent + other.exponent;
        Product {
            term: Term {
                negative: self.negative != other.negative,
                units,
                exponent: exponent - 2 * format.fraction,
            },
            exponent: if units == 0 { NOTHING } else { exponent },
        }
    }
}

/// Single-precision result if a source is not finite. NaNs of factors take precedence over invalid
/// products, and these over a NaN in the third source.
fn of_special(factors: [[Factor; 2]; 2], c: u32) -> Option<u32> {
    if factors.iter().flatten().any(|factor| factor.is_nan) {
        return Some(NAN_OF_FACTOR);
    }
    let is_infinite = |[a, b]: &[Factor; 2]| a.is_infinite || b.is_infinite;
    let is_zero = |[a, b]: &[Factor; 2]| a.significand == 0 || b.significand == 0;
    let has_infinity = |negative: bool| {
        factors.iter().any(|product| {
            is_infinite(product) && (product[0].negative != product[1].negative) == negative
        })
    };
    let [positive, negative] = [false, true].map(has_infinity);
    if factors.iter().any(|product| is_infinite(product) && is_zero(product))
        || positive && negative
    {
        return Some(INVALID);
    }
    const INFINITY: u32 = 0x7f80_0000;
    if c & 0x7fff_ffff > INFINITY {
        return Some(c | 1 << 22);
    }
    match (positive || c == INFINITY, negative || c == INFINITY | 1 << 31) {
        (true, true) => Some(INVALID),
        (true, false) => Some(INFINITY),
        (false, true) => Some(INFINITY | 1 << 31),
        (false, false) => None,
    }
}

/// An integer number of units of `2^grid`.
struct Sum {
    units: i64,
    grid: i32,
}

/// A format of results.
struct Rounded {
    /// Bits of the significand.
    precision: i32,
    /// The exponent of the least normal number.
    least: i32,
    /// The greatest exponent.
    greatest: i32,
    /// `true` if denormal results are kept.
    keeps_denormals: bool,
}

const SINGLE: Rounded =
    Rounded { precision: 24, least: -126, greatest: 127, keeps_denormals: true };
const TO_HALF: Rounded = Rounded { precision: 11, least: -14, greatest: 15, keeps_denormals: true };

impl Rounded {
    /// Bits of the magnitude, rounded to nearest even; `None` if it overflows. A format without
    /// denormals is rounded before it is flushed.
    fn bits(&self, sum: &Sum) -> Option<u32> {
        let magnitude = sum.units.unsigned_abs();
        let Some(top) = magnitude.checked_ilog2() else { return Some(0) };
        let exponent = top as i32 + sum.grid;
        let floor = if self.keeps_denormals { self.least } else { exponent };
        let mut lowest = exponent.max(floor) - (self.precision - 1);
        let mut units = nearest_even(magnitude, lowest - sum.grid);
        if units >> self.precision != 0 {
            units >>= 1;
            lowest += 1;
        }
        if units >> (self.precision - 1) == 0 {
            return Some(units as u32);
        }
        let exponent = lowest + self.precision - 1;
        if exponent < self.least {
            return Some(0);
        }
        let field = (exponent - self.least + 1) as u32;
        let fraction = units as u32 & ((1 << (self.precision - 1)) - 1);
        (exponent <= self.greatest).then_some(field << (self.precision - 1) | fraction)
    }
}

/// Drops the lowest bits of a number, rounding to nearest even.
fn nearest_even(value: u64, bits: i32) -> u64 {
    match bits {
        ..=0 => value << -bits,
        64.. => 0,
        _ => {
            let (whole, rest) = (value >> bits, value & ((1 << bits) - 1));
            let half = 1 << (bits - 1);
            whole + u64::from(rest > half || rest == half && whole & 1 != 0)
        }
    }
}

/// Converts a sum to single precision. Zero, including a flushed result, is positive.
fn to_single(sum: &Sum, negative: bool, keeps_denormals: bool) -> u32 {
    let format = Rounded { keeps_denormals, ..SINGLE };
    let magnitude = format.bits(sum).unwrap_or(0x7f80_0000);
    if magnitude == 0 { 0 } else { magnitude | u32::from(negative) << 31 }
}

/// RDNA 3: terms whose sign differs from that of the third source count as their inverted bits,
/// which is one unit further from zero than their negation; this includes zeros. Denormal results,
/// and denormal sources in bfloat16 and single precision, are zero.
pub(super) fn gfx11(format: &Format, a: Pair<u16>, b: Pair<u16>, c: f32) -> f32 {
    let factor = |bits| Factor::of(bits, format, format.keeps_denormals);
    let factors = [[a.0, b.0], [a.1, b.1]].map(|pair| pair.map(factor));
    let special = of_special(factors, c.to_bits());
    f32::from_bits(special.unwrap_or_else(|| {
        let products = factors.map(|[a, b]| a.times(b, format));
        let c = Term::of_single(c.to_bits(), false);
        let terms = [c, products[0].term, products[1].term];
        if terms.iter().all(|term| term.units == 0) {
            return 0;
        }
        let of_factors = products[0].exponent.max(products[1].exponent) - 24;
        let of_terms = terms.iter().fold(NOTHING, |top, term| top.max(term.top())) - 26;
        let grid = of_factors.max(of_terms);
        let units = terms.iter().map(|term| {
            let units = term.cut(grid);
            if term.negative == c.negative { units } else { !units }
        });
        let sum = Sum { units: units.sum(), grid };
        to_single(&sum, (sum.units < 0) != c.negative, false)
    }))
}

/// RDNA 4 with a single-precision result.
pub(super) fn gfx12(format: &Format, a: Pair<u16>, b: Pair<u16>, c: f32) -> f32 {
    let sum = gfx12_sum(format, a, b, c, SINGLE.least);
    f32::from_bits(sum.bits(|sum| to_single(sum, sum.units < 0, true)))
}

/// RDNA 4 with a half-precision result; MODE decides whether overflow gives the greatest number.
pub(super) fn gfx12_half(a: Pair<u16>, b: Pair<u16>, c: f16, mode: Mode) -> f16 {
    // A NaN keeps its payload, which the conversion shifts.
    let c = to_f32(c);
    let bits = match gfx12_sum(&HALF, a, b, c, TO_HALF.least) {
        Made::Special(NAN_OF_FACTOR) => 0xfe3d,
        Made::Special(bits) => (bits >> 16 & 0x8000 | 0x7c00 | bits >> 13 & 0x3ff) as u16,
        Made::Sum(sum) => {
            let clamps = mode.0 & Mode::FP16_OVERFLOW != 0;
            let magnitude = TO_HALF.bits(&sum).unwrap_or(if clamps { 0x7bff } else { 0x7c00 });
            let sign = u16::from(sum.units < 0 && magnitude != 0) << 15;
            magnitude as u16 | sign
        }
    };
    f16::from_bits(bits)
}

/// Intermediate result.
enum Made {
    /// Result of sources that are not all finite, in single precision.
    Special(u32),
    Sum(Sum),
}

impl Made {
    fn bits(self, of_sum: impl FnOnce(&Sum) -> u32) -> u32 {
        match self {
            Made::Special(special) => special,
            Made::Sum(sum) => of_sum(&sum),
        }
    }
}

/// RDNA 4: both products are added on one grid, then their sum and the third source on another;
/// each is rounded down. The third source counts as a number with an exponent of at least `least`.
/// If it has no whole unit, it counts as zero where units are greater than that.
fn gfx12_sum(format: &Format, a: Pair<u16>, b: Pair<u16>, c: f32, least: i32) -> Made {
    let factors =
        [[a.0, b.0], [a.1, b.1]].map(|pair| pair.map(|bits| Factor::of(bits, format, true)));
    if let Some(special) = of_special(factors, c.to_bits()) {
        return Made::Special(special);
    }
    let products = factors.map(|[a, b]| a.times(b, format));
    let c = Term::of_single(c.to_bits(), true);
    let of_products = products[0].exponent.max(products[1].exponent) - 24;
    let pair: i64 = products.iter().map(|product| product.term.floor(of_products)).sum();
    let pair = Term { negative: pair < 0, units: pair.unsigned_abs(), exponent: of_products };
    let grid = of_products.max(least.max(c.top()) - 26);
    let is_lost = grid > least && c.cut(grid) == 0;
    let third = if is_lost { 0 } else { c.floor(grid) };
    Made::Sum(Sum { units: third + pair.floor(grid), grid })
}
