//! Floating point of eight bits as the Open Compute Project defines it (OCP 8-bit Floating Point
//! Specification, revision 1.0): `fp8` is E4M3, which has no infinities, `bf8` is E5M2.

use half::f16;

/// A format: bits of the mantissa, bias of the exponent, and the greatest finite number's bits.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    mantissa: u32,
    bias: i32,
    greatest: u8,
    /// What stands for numbers that are too great: infinity, or NaN where there is none.
    overflow: u8,
}

/// E4M3.
pub const FP8: Format = Format { mantissa: 3, bias: 7, greatest: 0x7e, overflow: 0x7f };
/// E5M2.
pub const BF8: Format = Format { mantissa: 2, bias: 15, greatest: 0x7b, overflow: 0x7c };
/// The NaN of both formats that has all its bits set.
const NAN: u8 = 0x7f;

/// The number of an E4M3.
pub fn fp8(bits: u8) -> f32 {
    let magnitude = bits & 0x7f;
    let value = match (magnitude >> 3, magnitude & 7) {
        (15, 7) => f32::NAN,
        (0, fraction) => f32::from(fraction) / 512.0,
        (exponent, fraction) => {
            let exponent = i32::from(exponent) - FP8.bias;
            (1.0 + f32::from(fraction) / 8.0) * (exponent as f32).exp2()
        }
    };
    if bits >> 7 != 0 { -value } else { value }
}

/// The number of an E5M2: the upper byte of half precision.
pub fn bf8(bits: u8) -> f32 {
    let wide = f16::from_bits(u16::from(bits) << 8);
    crate::execute::lane::binary16::to_f32(wide)
}

impl Format {
    /// A number in this format, rounded to nearest even. One that is too great becomes the greatest if
    /// `clamps`, else infinity, or NaN where the format has none.
    pub fn of(self, value: f32, clamps: bool) -> u8 {
        let sign = ((value.to_bits() >> 31) as u8) << 7;
        if value.is_nan() {
            return sign | NAN;
        }
        let magnitude = f64::from(value.abs());
        // Exact: the scale is a power of two.
        let least = 1 - self.bias;
        let exponent = ((f64::to_bits(magnitude) >> 52) as i32 - 1023).max(least);
        let unit = f64::from(exponent - self.mantissa as i32).exp2();
        let places = (magnitude / unit).round_ties_even();
        let base = (exponent - least) as f64 * f64::from(1u32 << self.mantissa);
        // A carry out of the mantissa goes on into the exponent.
        let bits = places + base;
        let top = if clamps { self.greatest } else { self.overflow };
        sign | if bits > f64::from(self.greatest) { top } else { bits as u8 }
    }

    /// A number in this format, where `random` decides about the rounding: its upper bits are added
    /// below the last place, and what is left there is cut off.
    pub fn of_stochastic(self, value: f32, random: u32, clamps: bool) -> u8 {
        if !value.is_finite() {
            return self.of(value, clamps);
        }
        let below = 23 - self.mantissa;
        let added = value.to_bits() & 0x7fff_ffff;
        let carried = (added + (random >> (32 - below))) & !((1 << below) - 1);
        self.of(f32::from_bits(carried | value.to_bits() & 1 << 31), clamps)
    }
}
