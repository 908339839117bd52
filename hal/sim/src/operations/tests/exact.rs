//! Exact sums of numbers in fixed point, rounded once: the reference for floating point.

/// A binary floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the mantissa without the hidden one.
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

    /// The NaN of invalid operations.
    pub fn default_nan(self) -> u64 {
        self.infinity() | self.quiet_bit()
    }

    /// What makes a NaN quiet.
    pub fn quiet_bit(self) -> u64 {
        1 << (self.mantissa - 1)
    }

    /// Whether it is a NaN.
    pub fn is_nan(self, bits: u64) -> bool {
        bits & !self.sign() > self.infinity()
    }

    /// Whether it is infinite.
    pub fn is_infinite(self, bits: u64) -> bool {
        bits & !self.sign() == self.infinity()
    }

    /// Whether it is negative, or a zero or NaN with the sign set.
    pub fn is_negative(self, bits: u64) -> bool {
        bits & self.sign() != 0
    }

    /// Whether it is zero.
    pub fn is_zero(self, bits: u64) -> bool {
        bits & !self.sign() == 0
    }

    /// Whether it is denormal.
    pub fn is_denormal(self, bits: u64) -> bool {
        let magnitude = bits & !self.sign();
        magnitude != 0 && magnitude >> self.mantissa == 0
    }

    /// Zero in place of a denormal.
    pub fn flush(self, bits: u64) -> u64 {
        if self.is_denormal(bits) { bits & self.sign() } else { bits }
    }

    /// A finite number as a term.
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

/// A number: digits times two to the exponent.
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
    /// An integer.
    pub fn integer(value: i128) -> Term {
        Term { negative: value < 0, digits: value.unsigned_abs(), exponent: 0 }
    }

    /// The product.
    pub fn times(self, other: Term) -> Term {
        Term {
            negative: self.negative != other.negative,
            digits: self.digits * other.digits,
            exponent: self.exponent + other.exponent,
        }
    }
}

/// Words of a sum; bit 0 stands for 2 to the `-POINT`.
const WORDS: usize = 80;
const POINT: i32 = 2400;

/// A sum in two's complement.
struct Sum([u64; WORDS]);

impl Sum {
    fn add(&mut self, term: Term) {
        let shift = (term.exponent + POINT) as usize;
        let mut shifted = [0u64; WORDS];
        for bit in 0..128 {
            if term.digits >> bit & 1 != 0 {
                shifted[(shift + bit) / 64] |= 1 << ((shift + bit) % 64);
            }
        }
        if term.negative {
            negate(&mut shifted);
        }
        let mut carry = 0;
        for (word, add) in self.0.iter_mut().zip(shifted) {
            let total = u128::from(*word) + u128::from(add) + carry;
            *word = total as u64;
            carry = total >> 64;
        }
    }
}

fn negate(words: &mut [u64; WORDS]) {
    let mut carry = 1;
    for word in words {
        let total = u128::from(!*word) + carry;
        *word = total as u64;
        carry = total >> 64;
    }
}

/// The sum of the terms, rounded to nearest even. A zero sum of terms that are not all negative
/// is plus zero.
pub fn rounded_sum(format: Format, terms: &[Term]) -> u64 {
    let mut sum = Sum([0; WORDS]);
    terms.iter().for_each(|term| sum.add(*term));
    let mut negative = sum.0[WORDS - 1] >> 63 != 0;
    if negative {
        negate(&mut sum.0);
    }
    let Some(top) = (0..WORDS).rev().find(|word| sum.0[*word] != 0) else {
        negative = terms.iter().all(|term| term.negative);
        return if negative { format.sign() } else { 0 };
    };
    let highest = top as i32 * 64 + 63 - sum.0[top].leading_zeros() as i32;
    let least = 1 - format.bias() - format.mantissa as i32 + POINT;
    let last = (highest - format.mantissa as i32).max(least);
    let bit = |at: i32| sum.0[at as usize / 64] >> (at % 64) & 1;
    let mut digits = (last..=highest).rev().fold(0, |digits, at| digits << 1 | bit(at));
    let half = bit(last - 1) != 0;
    let below = (0..last - 1).any(|at| bit(at) != 0);
    if half && (below || digits & 1 != 0) {
        digits += 1;
    }
    // The hidden bit, and a carry out of the digits, add to the exponent field.
    let field = (last - least) as u64;
    let magnitude = (digits + (field << format.mantissa)).min(format.infinity());
    magnitude | if negative { format.sign() } else { 0 }
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
        let host = a.mul_add(b, c);
        assert_eq!(rounded_sum(SINGLE, &[x.times(y), z]), u64::from(host.to_bits()), "{a} {b} {c}");
        assert_eq!(rounded_sum(SINGLE, &[x, z]), u64::from((a + c).to_bits()), "{a} {c}");
    }
}
