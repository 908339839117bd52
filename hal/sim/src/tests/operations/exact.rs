//! Exact fixed-point sums of numbers, rounded once: the reference for floating-point operations.

use crate::execute::lane::Kind;
use crate::wave::Mode;

/// A binary floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the mantissa, without the hidden bit.
    pub mantissa: u32,
    /// Bits of the exponent.
    pub exponent: u32,
}

/// Half precision.
pub const HALF: Format = Format { mantissa: 10, exponent: 5 };
/// Single precision.
pub const SINGLE: Format = Format { mantissa: 23, exponent: 8 };
/// Double precision.
pub const DOUBLE: Format = Format { mantissa: 52, exponent: 11 };

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// The sign bit.
    pub fn sign(self) -> u64 {
        1 << (self.mantissa + self.exponent)
    }

    /// Plus infinity.
    pub fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.mantissa
    }

    /// The NaN returned by invalid operations.
    pub fn default_nan(self) -> u64 {
        self.infinity() | self.quiet_bit()
    }

    /// The mantissa bit that makes a NaN quiet.
    pub fn quiet_bit(self) -> u64 {
        1 << (self.mantissa - 1)
    }

    /// Returns `true` for a NaN.
    pub fn is_nan(self, bits: u64) -> bool {
        bits & !self.sign() > self.infinity()
    }

    /// Returns `true` for an infinity.
    pub fn is_infinite(self, bits: u64) -> bool {
        bits & !self.sign() == self.infinity()
    }

    /// Returns `true` if the sign bit is set, including zeros and NaNs.
    pub fn is_negative(self, bits: u64) -> bool {
        bits & self.sign() != 0
    }

    /// Returns `true` for a zero of either sign.
    pub fn is_zero(self, bits: u64) -> bool {
        bits & !self.sign() == 0
    }

    /// Returns `true` for a denormal.
    pub fn is_denormal(self, bits: u64) -> bool {
        let magnitude = bits & !self.sign();
        magnitude != 0 && magnitude >> self.mantissa == 0
    }

    /// Replaces a denormal by zero.
    pub fn flush(self, bits: u64) -> u64 {
        if self.is_denormal(bits) { bits & self.sign() } else { bits }
    }

    /// Converts a finite number to a term.
    pub fn term(self, bits: u64) -> Term {
        let magnitude = bits & !self.sign();
        let field = (magnitude >> self.mantissa) as i32;
        let fraction = magnitude & ((1 << self.mantissa) - 1);
        let (digits, exponent) =
            if field == 0 { (fraction, 1) } else { (fraction | 1 << self.mantissa, field) };
        Term {
            negative: self.is_negative(bits),
            digits: digits.into(),
            exponent: exponent - self.bias() - self.mantissa as i32,
        }
    }
}

/// A number: `digits * 2^exponent`.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// The sign.
    pub negative: bool,
    /// The digits.
    pub digits: u128,
    /// The exponent.
    pub exponent: i32,
}

impl Term {
    /// Converts an integer to a term.
    pub fn integer(value: i128) -> Term {
        Term { negative: value < 0, digits: value.unsigned_abs(), exponent: 0 }
    }

    /// Returns the product.
    pub fn times(self, other: Term) -> Term {
        Term {
            negative: self.negative != other.negative,
            digits: self.digits * other.digits,
            exponent: self.exponent + other.exponent,
        }
    }
}

/// Rounding direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the nearest number, ties to even.
    Even,
    /// Up.
    Up,
    /// Down.
    Down,
    /// Towards zero.
    Zero,
}

/// Rounding of the results of a format.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The format.
    pub format: Format,
    /// Direction of rounding.
    pub direction: Direction,
    /// If set, overflow gives the greatest finite number in every direction.
    pub clamps: bool,
}

impl Rule {
    /// Round to nearest, ties to even.
    pub fn nearest(format: Format) -> Rule {
        Rule { format, direction: Direction::Even, clamps: false }
    }

    /// Rounding rule from MODE: bits 1:0 for single precision, bits 3:2 for the other formats, bit
    /// 23 for half-precision overflow.
    pub fn from_mode(format: Format, mode: Mode) -> Rule {
        let field = if format == SINGLE { mode.0 & 3 } else { mode.0 >> 2 & 3 };
        let direction =
            [Direction::Even, Direction::Up, Direction::Down, Direction::Zero][field as usize];
        Rule { format, direction, clamps: format == HALF && mode.0 >> 23 & 1 != 0 }
    }

    /// Returns the sum of the terms, rounded once. A zero sum of terms of both signs is minus zero
    /// when rounding down, else plus zero.
    pub fn rounded(self, terms: &[Term]) -> u64 {
        let format = self.format;
        let mut sum = Sum([0; WORDS]);
        terms.iter().for_each(|term| sum.add(*term));
        let negative = sum.0[WORDS - 1] >> 63 != 0;
        if negative {
            sum.negate();
        }
        let Some(highest) = sum.highest() else {
            let negative = |term: &Term| term.negative;
            let some = terms.iter().any(negative) && self.direction == Direction::Down;
            let minus = some || terms.iter().all(negative);
            return if minus { format.sign() } else { 0 };
        };
        let least = 1 - format.bias() - format.mantissa as i32 + POINT;
        let last = (highest - format.mantissa as i32).max(least);
        let mut digits = sum.word_at(last);
        let half = sum.bit(last - 1);
        let below = sum.any_below(last - 1);
        let away = match self.direction {
            Direction::Even => half && (below || digits & 1 != 0),
            Direction::Up => (half || below) && !negative,
            Direction::Down => (half || below) && negative,
            Direction::Zero => false,
        };
        digits += u64::from(away);
        // The hidden bit, and a carry out of the digits, add to the exponent field.
        let field = (last - least) as u64;
        let magnitude = digits + (field << format.mantissa);
        let sign = if negative { format.sign() } else { 0 };
        if magnitude < format.infinity() {
            sign | magnitude
        } else {
            sign | self.overflow(negative)
        }
    }

    /// Returns the result of an overflow, without its sign.
    pub fn overflow(self, negative: bool) -> u64 {
        let infinite = match self.direction {
            Direction::Even => true,
            Direction::Up => !negative,
            Direction::Down => negative,
            Direction::Zero => false,
        };
        self.format.infinity() - u64::from(self.clamps || !infinite)
    }
}

/// Number of words of a sum; bit 0 represents `2^-POINT`.
const WORDS: usize = 80;
const POINT: i32 = 2400;

/// A sum in two's complement.
struct Sum([u64; WORDS]);

impl Sum {
    fn add(&mut self, term: Term) {
        let shift = (term.exponent + POINT) as usize;
        let (first, bits) = (shift / 64, shift % 64);
        let low = term.digits << bits;
        let high = if bits == 0 { 0 } else { term.digits >> (128 - bits) };
        let words = [low as u64, (low >> 64) as u64, high as u64];
        let mut carry = false;
        for (at, word) in self.0[first..].iter_mut().enumerate() {
            let part = words.get(at).copied().unwrap_or(0);
            let (sum, one) =
                if term.negative { word.overflowing_sub(part) } else { word.overflowing_add(part) };
            let (sum, other) = if term.negative {
                sum.overflowing_sub(carry.into())
            } else {
                sum.overflowing_add(carry.into())
            };
            *word = sum;
            carry = one || other;
        }
    }

    fn negate(&mut self) {
        let mut carry = true;
        for word in &mut self.0 {
            let (negated, overflow) = (!*word).overflowing_add(carry.into());
            *word = negated;
            carry = overflow;
        }
    }

    fn highest(&self) -> Option<i32> {
        let top = (0..WORDS).rev().find(|word| self.0[*word] != 0)?;
        Some(top as i32 * 64 + 63 - self.0[top].leading_zeros() as i32)
    }

    fn bit(&self, at: i32) -> bool {
        self.0[at as usize / 64] >> (at % 64) & 1 != 0
    }

    /// Returns the 64 bits from `at`.
    fn word_at(&self, at: i32) -> u64 {
        let (word, bits) = (at as usize / 64, at % 64);
        let high = if bits == 0 { 0 } else { self.0[word + 1] << (64 - bits) };
        self.0[word] >> bits | high
    }

    fn any_below(&self, at: i32) -> bool {
        let (word, bits) = (at as usize / 64, at % 64);
        self.0[..word].iter().any(|word| *word != 0) || self.0[word] & ((1 << bits) - 1) != 0
    }
}

#[test]
fn sums_agree_with_the_host() {
    let mut random = super::Random(1);
    for _ in 0..2000 {
        let [a, b, c] = std::array::from_fn(|_| f32::from_bits(random.next() as u32));
        if !(a.is_finite() && b.is_finite() && c.is_finite()) {
            continue;
        }
        let [x, y, z] = [a, b, c].map(|value| SINGLE.term(value.to_bits().into()));
        let rule = Rule::nearest(SINGLE);
        let host = a.mul_add(b, c);
        assert_eq!(rule.rounded(&[x.times(y), z]), u64::from(host.to_bits()), "{a} {b} {c}");
        assert_eq!(rule.rounded(&[x, z]), u64::from((a + c).to_bits()), "{a} {c}");
    }
}

/// The results of the directions enclose an inexact number as each direction is defined.
#[test]
fn directions_bracket_the_exact_number() {
    let mut random = super::Random(2);
    for format in [HALF, SINGLE] {
        for _ in 0..4000 {
            let exact = DOUBLE.term(super::draw(&mut random, Kind::F64) & !(0x7 << 60));
            let round = |direction| Rule { direction, ..Rule::nearest(format) }.rounded(&[exact]);
            let value = |bits: u64| {
                if format.is_infinite(bits) {
                    return if format.is_negative(bits) { f64::MIN } else { f64::MAX };
                }
                f64::from_bits(Rule::nearest(DOUBLE).rounded(&[format.term(bits)]))
            };
            let exact = f64::from_bits(Rule::nearest(DOUBLE).rounded(&[exact]));
            let (up, down) = (round(Direction::Up), round(Direction::Down));
            assert!(value(down) <= exact && exact <= value(up), "{exact:e}");
            let sides = [up, down];
            assert!(
                sides.contains(&round(Direction::Even)) && sides.contains(&round(Direction::Zero))
            );
            assert!(value(round(Direction::Zero)).abs() <= exact.abs());
            let neighbours = (up & !format.sign()).abs_diff(down & !format.sign());
            assert!(neighbours <= 1, "{exact:e}: {up:#x} and {down:#x}");
        }
    }
}
