//! Dot products of RDNA 3 and RDNA 4 as these chips make them: not by steps of IEEE 754, but as one sum of
//! integers, which count units of a power of two. The unit follows from the exponents of the factors and of
//! the third source, so that small terms lose bits (ROCm/rocm-systems issue 12056 and pull request 12120,
//! measured on gfx1151, gfx1100 and gfx1201).

use crate::execute::lane::Pair;
use crate::execute::lane::binary16::to_f32;
use crate::wave::Mode;
use half::f16;

/// A format of factors.
pub(super) struct Format {
    /// Bits of the fraction.
    fraction: i32,
    /// What is added to exponents.
    bias: i32,
    /// Whether RDNA 3 keeps denormals. RDNA 4 does in any case.
    keeps_denormals: bool,
}

/// Half precision.
pub(super) const HALF: Format = Format { fraction: 10, bias: 15, keeps_denormals: true };
/// Bfloat16.
pub(super) const BRAIN: Format = Format { fraction: 7, bias: 127, keeps_denormals: false };

/// The exponent of what is zero: below all others.
const NOTHING: i32 = -1024;
/// What a factor that is a NaN gives.
const NAN_OF_FACTOR: u32 = 0xffc0_0a3d;
/// What an invalid product or sum gives.
const INVALID: u32 = 0xffc0_0000;

/// Units of `2^exponent`.
#[derive(Clone, Copy)]
struct Term {
    negative: bool,
    units: u64,
    exponent: i32,
}

impl Term {
    /// The exponent of the highest bit.
    fn top(self) -> i32 {
        match self.units.checked_ilog2() {
            Some(top) => self.exponent + top as i32,
            None => NOTHING,
        }
    }

    /// A number of single precision that is finite.
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

    /// Whole units of `2^grid` of the magnitude.
    fn cut(self, grid: i32) -> i64 {
        shifted(self.units.into(), self.exponent - grid) as i64
    }

    /// Whole units of `2^grid` that are not greater.
    fn floor(self, grid: i32) -> i64 {
        let units = i128::from(self.units);
        shifted(if self.negative { -units } else { units }, self.exponent - grid) as i64
    }
}

/// A number times a power of two, without what lies below the point. The grid is never so fine that bits are
/// lost above: it is at most 26 places below the highest one.
fn shifted(units: i128, places: i32) -> i128 {
    if places < 0 { units >> (-places).min(127) } else { units << places.min(63) }
}

/// A product of two factors.
#[derive(Clone, Copy)]
struct Product {
    term: Term,
    /// The sum of the factors' exponents, which that of the product may exceed by one, or fall below where
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

/// The result where a source is no finite number, in single precision. NaNs of factors come before invalid
/// products, and these before a NaN that is the third source.
fn of_special(factors: [[Factor; 2]; 2], c: u32) -> Option<u32> {
    if factors.iter().flatten().any(|factor| factor.is_nan) {
        return Some(NAN_OF_FACTOR);
    }
    let is_infinite = |[a, b]: &[Factor; 2]| a.is_infinite || b.is_infinite;
    let is_zero = |[a, b]: &[Factor; 2]| a.significand == 0 || b.significand == 0;
    let has_infinity = |negative: bool| {
        factors
            .iter()
            .any(|own| is_infinite(own) && (own[0].negative != own[1].negative) == negative)
    };
    let [positive, negative] = [false, true].map(has_infinity);
    if factors.iter().any(|own| is_infinite(own) && is_zero(own)) || positive && negative {
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
    /// Whether results below the least normal number are kept.
    keeps_denormals: bool,
}

const SINGLE: Rounded =
    Rounded { precision: 24, least: -126, greatest: 127, keeps_denormals: true };
const TO_HALF: Rounded = Rounded { precision: 11, least: -14, greatest: 15, keeps_denormals: true };

impl Rounded {
    /// The magnitude rounded to nearest even, as bits without a sign; `None` where it overflows. A format
    /// without denormals is rounded before it is flushed.
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

/// A number without its lowest bits, rounded to nearest even.
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

/// Single precision of a sum. Zero is positive, also what is flushed to it.
fn to_single(sum: &Sum, negative: bool, keeps_denormals: bool) -> u32 {
    let format = Rounded { keeps_denormals, ..SINGLE };
    let magnitude = format.bits(sum).unwrap_or(0x7f80_0000);
    if magnitude == 0 { 0 } else { magnitude | u32::from(negative) << 31 }
}

/// RDNA 3: what opposes the sign of the third source counts as its bits inverted, which is one unit further
/// from zero than its negation, zeros too. Denormal results, and those of bfloat16 and single precision
/// among the sources, are zero.
pub(super) fn gfx11(format: &Format, a: Pair<u16>, b: Pair<u16>, c: f32) -> f32 {
    let factor = |bits| Factor::of(bits, format, format.keeps_denormals);
    let factors = [[a.0, b.0], [a.1, b.1]].map(|own| own.map(factor));
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

/// RDNA 4 into single precision.
pub(super) fn gfx12(format: &Format, a: Pair<u16>, b: Pair<u16>, c: f32) -> f32 {
    let sum = gfx12_sum(format, a, b, c, SINGLE.least);
    f32::from_bits(sum.bits(|sum| to_single(sum, sum.units < 0, true)))
}

/// RDNA 4 into half precision; MODE says whether overflow gives the greatest number.
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

/// What is made of the sources.
enum Made {
    /// No finite number, in single precision.
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

/// RDNA 4: both products are added on a grid of their own, then their sum and the third source on another
/// one; each is rounded down. The third source counts as a number with the exponent `least` at least. One
/// that has no whole unit counts as zero where units are greater than that.
fn gfx12_sum(format: &Format, a: Pair<u16>, b: Pair<u16>, c: f32, least: i32) -> Made {
    let factors =
        [[a.0, b.0], [a.1, b.1]].map(|own| own.map(|bits| Factor::of(bits, format, true)));
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
