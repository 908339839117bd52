//! Relative errors of floating-point values.

use flipwave_arch::FloatFormat;
use flipwave_host::output::float_text;
use rustc_apfloat::ieee::{BFloat, Double, Half};
use rustc_apfloat::{Float, FloatConvert};
use std::fmt;

/// A relative error: +0.01 changes 1.0 to 1.01. A number from -2^1023 to 2^1023, compared by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RelativeError(u64);

impl RelativeError {
    /// Returns `None` for infinities and NaN.
    pub fn new(error: f64) -> Option<RelativeError> {
        error.is_finite().then_some(RelativeError(error.to_bits()))
    }

    /// The error.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }

    /// Applies the error to the number of this format in the bits `before`: multiplies by one plus the
    /// error in double precision and rounds to nearest even. NaN stays unchanged; if the result is not
    /// a number, it is the quiet NaN of the format with positive sign.
    pub(crate) fn apply(self, format: FloatFormat, before: u64) -> u64 {
        let old = number(format, before);
        if old.is_nan() { before } else { with_number(format, before, old * (1.0 + self.value())) }
    }
}

impl fmt::Display for RelativeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&float_text(self.value()))
    }
}

/// Converts a 16-bit number to double precision, which represents it exactly.
fn widened<F: FloatConvert<Double>>(bits: u16) -> f64 {
    let double: Double = F::from_bits(bits.into()).convert(&mut false).value;
    f64::from_bits(double.to_bits() as u64)
}

/// Rounds to the nearest 16-bit number, ties to even.
fn narrowed<F: Float>(number: f64) -> u16
where
    Double: FloatConvert<F>,
{
    let narrow: F = Double::from_bits(number.to_bits().into()).convert(&mut false).value;
    narrow.to_bits() as u16
}

/// Reads the number of a format from `bits`.
pub(crate) fn number(format: FloatFormat, bits: u64) -> f64 {
    match format {
        FloatFormat::F16 => widened::<Half>(bits as u16),
        FloatFormat::F16High => widened::<Half>((bits >> 16) as u16),
        FloatFormat::Bf16 => widened::<BFloat>(bits as u16),
        FloatFormat::Bf16High => widened::<BFloat>((bits >> 16) as u16),
        FloatFormat::F32 => f32::from_bits(bits as u32).into(),
        FloatFormat::F64 => f64::from_bits(bits),
    }
}

/// Replaces the number of a format in `bits`, rounded to nearest even.
pub(crate) fn with_number(format: FloatFormat, bits: u64, number: f64) -> u64 {
    // The NaN produced by host arithmetic depends on the host.
    let new = if number.is_nan() { f64::from_bits(0x7ff8 << 48) } else { number };
    let low = |half: u16| bits & !0xffff | u64::from(half);
    let high = |half: u16| bits & !0xffff_0000 | u64::from(half) << 16;
    match format {
        FloatFormat::F16 => low(narrowed::<Half>(new)),
        FloatFormat::F16High => high(narrowed::<Half>(new)),
        FloatFormat::Bf16 => low(narrowed::<BFloat>(new)),
        FloatFormat::Bf16High => high(narrowed::<BFloat>(new)),
        FloatFormat::F32 => (new as f32).to_bits().into(),
        FloatFormat::F64 => new.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_apply_to_every_format() {
        let half = RelativeError::new(0.5).unwrap();
        assert_eq!(half.apply(FloatFormat::F32, 0x4000_0000), 0x4040_0000);
        assert_eq!(half.apply(FloatFormat::F64, 2.0f64.to_bits()), 3.0f64.to_bits());
        assert_eq!(half.apply(FloatFormat::F16, 0xabcd_4000), 0xabcd_4200);
        assert_eq!(half.apply(FloatFormat::F16High, 0x4000_abcd), 0x4200_abcd);
        assert_eq!(half.apply(FloatFormat::Bf16, 0xabcd_4000), 0xabcd_4040);
        assert_eq!(half.apply(FloatFormat::Bf16High, 0x4000_abcd), 0x4040_abcd);
    }

    #[test]
    fn zero_infinity_and_nan_stay_special() {
        let f32s = |error: f64, value: f32| {
            let error = RelativeError::new(error).unwrap();
            error.apply(FloatFormat::F32, value.to_bits().into()) as u32
        };
        assert_eq!(f32s(0.5, 0.0), 0);
        assert_eq!(f32s(0.5, -0.0), 0x8000_0000);
        assert_eq!(f32s(-1.0, f32::INFINITY), 0x7fc0_0000);
        assert_eq!(f32s(0.5, f32::NEG_INFINITY), 0xff80_0000);
        assert_eq!(f32s(0.5, f32::MAX), 0x7f80_0000);
        let nan = f32::from_bits(0xffc1_2345);
        assert_eq!(f32s(0.5, nan), 0xffc1_2345);
        assert_eq!(f32s(1.0, f32::from_bits(1)), 2, "denormal numbers are kept");
    }

    /// A product slightly above the midpoint of two halves, by less than the resolution of single
    /// precision.
    #[test]
    fn numbers_are_rounded_once() {
        let middle = RelativeError::new(f64::powi(2.0, -11) + f64::powi(2.0, -50)).unwrap();
        assert_eq!(middle.apply(FloatFormat::F16, 0x3c00), 0x3c01);
        let middle = RelativeError::new(f64::powi(2.0, -8) + f64::powi(2.0, -50)).unwrap();
        assert_eq!(middle.apply(FloatFormat::Bf16, 0x3f80), 0x3f81);
    }

    #[test]
    fn errors_without_a_value_are_none() {
        assert!(RelativeError::new(f64::NAN).is_none());
        assert!(RelativeError::new(f64::INFINITY).is_none());
    }
}
