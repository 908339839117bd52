//! Floating-point formats and arithmetic in every rounding mode.

use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

/// A floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    F16,
    Bf16,
    F32,
    F64,
}

/// Runs a generic function for a format: `by_format!(format, F => expression)`.
macro_rules! by_format {
    ($format:expr, $name:ident => $body:expr) => {
        match $format {
            Format::F16 => {
                type $name = rustc_apfloat::ieee::Half;
                $body
            }
            Format::Bf16 => {
                type $name = rustc_apfloat::ieee::BFloat;
                $body
            }
            Format::F32 => {
                type $name = rustc_apfloat::ieee::Single;
                $body
            }
            Format::F64 => {
                type $name = rustc_apfloat::ieee::Double;
                $body
            }
        }
    };
}
pub(crate) use by_format;

/// Arithmetic with two or three operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Fused,
}

impl Format {
    /// Width in bits.
    pub fn bits(self) -> u32 {
        match self {
            Format::F16 | Format::Bf16 => 16,
            Format::F32 => 32,
            Format::F64 => 64,
        }
    }

    /// Bits of the fraction.
    fn fraction_bits(self) -> u32 {
        match self {
            Format::F16 => 10,
            Format::Bf16 => 7,
            Format::F32 => 23,
            Format::F64 => 52,
        }
    }

    /// The sign bit.
    pub fn sign(self) -> u64 {
        1 << (self.bits() - 1)
    }

    /// Infinity.
    pub fn infinity(self) -> u64 {
        (self.sign() - 1) & !((1 << self.fraction_bits()) - 1)
    }

    /// The number 1.
    pub fn one(self) -> u64 {
        let fraction = self.fraction_bits();
        let bias = (1u64 << (self.bits() - 2 - fraction)) - 1;
        bias << fraction
    }

    /// The NaN that operations return: 0x7fff and 0x7fffffff (PTX ISA, "Floating Point Instructions"). In
    /// double precision, the manual leaves the NaN open; this is that of NVIDIA's GPUs for an operation
    /// without a NaN operand.
    pub fn nan(self) -> u64 {
        match self {
            Format::F64 => 0xfff8_0000_0000_0000,
            _ => self.sign() - 1,
        }
    }

    /// Returns `true` for a NaN.
    pub fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }

    /// Returns `true` for a subnormal number, not for zero.
    pub fn is_subnormal(self, bits: u64) -> bool {
        bits & self.infinity() == 0 && bits & (self.sign() - 1) != 0
    }

    /// Replaces a subnormal number by zero of the same sign.
    pub fn flushed(self, bits: u64) -> u64 {
        if self.is_subnormal(bits) { bits & self.sign() } else { bits }
    }

    /// Clamps to the range from 0 to 1; a NaN becomes 0.
    pub fn saturated(self, bits: u64) -> u64 {
        if self.is_nan(bits) || bits & self.sign() != 0 { 0 } else { bits.min(self.one()) }
    }

    /// A key that orders numbers, with -0 below 0. NaNs have no place in the order.
    pub fn order(self, bits: u64) -> i64 {
        let magnitude = (bits & (self.sign() - 1)) as i64;
        if bits & self.sign() != 0 { -1 - magnitude } else { magnitude }
    }

    /// Arithmetic, rounded once. NaNs are not canonical.
    pub fn arithmetic(self, operation: Arithmetic, round: Round, [a, b, c]: [u64; 3]) -> u64 {
        if round == Round::NearestTiesToEven {
            match self {
                Format::F32 => {
                    let single = |bits: u64| f32::from_bits(bits as u32);
                    let (a, b, c) = (single(a), single(b), single(c));
                    return nearest(operation, a, b, c, f32::mul_add).to_bits().into();
                }
                Format::F64 => {
                    let (a, b, c) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
                    return nearest(operation, a, b, c, f64::mul_add).to_bits();
                }
                Format::F16 | Format::Bf16 => {}
            }
        }
        by_format!(self, F => {
            let [a, b, c] = [a, b, c].map(|bits| F::from_bits(bits.into()));
            let result = match operation {
                Arithmetic::Add => a.add_r(b, round),
                Arithmetic::Subtract => a.sub_r(b, round),
                Arithmetic::Multiply => a.mul_r(b, round),
                Arithmetic::Divide => a.div_r(b, round),
                Arithmetic::Fused => a.mul_add_r(b, c, round),
            };
            result.value.to_bits() as u64
        })
    }

    /// Square root, rounded once.
    pub fn square_root(self, round: Round, bits: u64) -> u64 {
        let nearest = match self {
            Format::F32 => f32::from_bits(bits as u32).sqrt().to_bits().into(),
            _ => f64::from_bits(bits).sqrt().to_bits(),
        };
        let is_exception = self.is_nan(nearest) || nearest & (self.sign() - 1) == 0;
        if round == Round::NearestTiesToEven || is_exception || nearest == self.infinity() {
            return nearest;
        }
        // The square of a root is exact in quadruple precision.
        let root = self.to_quad(nearest);
        let square = root.mul_r(root, Round::NearestTiesToEven).value;
        match square.partial_cmp(&self.to_quad(bits)) {
            Some(std::cmp::Ordering::Greater) if round != Round::TowardPositive => nearest - 1,
            Some(std::cmp::Ordering::Less) if round == Round::TowardPositive => nearest + 1,
            _ => nearest,
        }
    }

    /// The number in quadruple precision, exactly.
    pub fn to_quad(self, bits: u64) -> Quad {
        let mut loses = false;
        by_format!(self, F => F::from_bits(bits.into()).convert(&mut loses).value)
    }

    /// Rounds a number of quadruple precision.
    pub fn of_quad(self, value: Quad, round: Round) -> u64 {
        let mut loses = false;
        match self {
            Format::F16 => {
                FloatConvert::<Half>::convert_r(value, round, &mut loses).value.to_bits() as u64
            }
            Format::Bf16 => {
                FloatConvert::<BFloat>::convert_r(value, round, &mut loses).value.to_bits() as u64
            }
            Format::F32 => {
                FloatConvert::<Single>::convert_r(value, round, &mut loses).value.to_bits() as u64
            }
            Format::F64 => {
                FloatConvert::<Double>::convert_r(value, round, &mut loses).value.to_bits() as u64
            }
        }
    }

    /// The number in double precision, exactly.
    pub fn to_f64(self, bits: u64) -> f64 {
        match self {
            Format::F16 => half::f16::from_bits(bits as u16).to_f64(),
            Format::Bf16 => half::bf16::from_bits(bits as u16).to_f64(),
            Format::F32 => f32::from_bits(bits as u32).into(),
            Format::F64 => f64::from_bits(bits),
        }
    }

    /// Rounds a number of double precision to nearest even.
    pub fn of_f64(self, value: f64) -> u64 {
        match self {
            Format::F16 => half::f16::from_f64(value).to_bits().into(),
            Format::Bf16 => half::bf16::from_f64(value).to_bits().into(),
            Format::F32 => (value as f32).to_bits().into(),
            Format::F64 => value.to_bits(),
        }
    }
}

fn nearest<T>(operation: Arithmetic, a: T, b: T, c: T, fused: fn(T, T, T) -> T) -> T
where
    T: std::ops::Add<Output = T>
        + std::ops::Sub<Output = T>
        + std::ops::Mul<Output = T>
        + std::ops::Div<Output = T>,
{
    match operation {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a * b,
        Arithmetic::Divide => a / b,
        Arithmetic::Fused => fused(a, b, c),
    }
}

/// The value of a number with 4 bits of exponent and 3 of fraction, without infinities (OCP 8-bit Floating
/// Point Specification, E4M3).
pub(crate) fn of_e4m3(bits: u8) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 3 & 0xf), f64::from(bits & 7));
    let magnitude = match (exponent, bits & 7) {
        (15, 7) => f64::NAN,
        (0, _) => fraction * 2f64.powi(-9),
        _ => (8.0 + fraction) * 2f64.powi(exponent - 10),
    };
    if bits & 0x80 != 0 { -magnitude } else { magnitude }
}

/// A format of 8 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Small {
    /// 4 bits of exponent, without infinities.
    E4M3,
    /// 5 bits of exponent.
    E5M2,
}

impl Small {
    /// The value.
    pub fn to_f64(self, bits: u8) -> f64 {
        match self {
            Small::E4M3 => of_e4m3(bits),
            // The upper half of a number in half precision.
            Small::E5M2 => Format::F16.to_f64(u64::from(bits) << 8),
        }
    }

    /// Rounds to nearest even; numbers beyond the range become the greatest finite one (`.satfinite`).
    pub fn of_f64(self, value: f64) -> u64 {
        if value.is_nan() {
            return 0x7f;
        }
        let greatest = match self {
            Small::E4M3 => 0x7e,
            Small::E5M2 => 0x7b,
        };
        let limit = self.to_f64(greatest);
        let mut loses = false;
        let magnitude = Double::from_bits(value.abs().min(limit).to_bits().into());
        let bits = match self {
            Small::E4M3 => {
                FloatConvert::<Float8E4M3FN>::convert(magnitude, &mut loses).value.to_bits()
            }
            Small::E5M2 => {
                FloatConvert::<Float8E5M2>::convert(magnitude, &mut loses).value.to_bits()
            }
        };
        bits as u64 | if value.is_sign_negative() { 0x80 } else { 0 }
    }
}
