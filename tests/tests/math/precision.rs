//! The three precisions, with errors in units in the last place.

use half::f16;

/// A floating-point type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    Half,
    Single,
    Double,
}

/// A value with about 106 bits: the nearest double and the remainder.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    pub nearest: f64,
    pub rest: f64,
}

impl Precision {
    /// All precisions, in the order of the bounds.
    pub const ALL: [Precision; 3] = [Precision::Half, Precision::Single, Precision::Double];

    /// Suffix in kernel names.
    pub fn suffix(self) -> &'static str {
        match self {
            Precision::Half => "f16",
            Precision::Single => "f32",
            Precision::Double => "f64",
        }
    }

    /// Bits of the significand, and the smallest exponent of a normal number.
    fn format(self) -> (i32, i32) {
        match self {
            Precision::Half => (11, -14),
            Precision::Single => (24, -126),
            Precision::Double => (53, -1022),
        }
    }

    /// The nearest number of the type.
    pub fn round(self, value: f64) -> f64 {
        match self {
            Precision::Half => f16::from_f64(value).to_f64(),
            Precision::Single => f64::from(value as f32),
            Precision::Double => value,
        }
    }

    /// The bytes of a number of the type.
    pub fn to_bytes(self, value: f64) -> Vec<u8> {
        match self {
            Precision::Half => f16::from_f64(value).to_le_bytes().into(),
            Precision::Single => (value as f32).to_le_bytes().into(),
            Precision::Double => value.to_le_bytes().into(),
        }
    }

    /// The numbers in bytes.
    pub fn to_numbers(self, bytes: &[u8]) -> Vec<f64> {
        match self {
            Precision::Half => {
                let number = |bytes: &[u8]| f16::from_le_bytes([bytes[0], bytes[1]]).to_f64();
                bytes.chunks(2).map(number).collect()
            }
            Precision::Single => {
                flipwave_tests::to_values::<f32>(bytes).into_iter().map(f64::from).collect()
            }
            Precision::Double => flipwave_tests::to_values(bytes),
        }
    }

    /// The distance between two numbers of the type around `value` (The OpenCL C Specification, "Relative
    /// Error as ULPs"). Since denormals are supported, the distance has a lower limit.
    fn unit(self, value: f64) -> f64 {
        let (bits, least) = self.format();
        let exponent = match value.abs().to_bits() >> 52 {
            0 => -1022,
            biased => biased as i32 - 1023,
        };
        power_of_two(exponent.max(least) - bits + 1)
    }

    /// The error of `found` in units in the last place. It is infinite if only one of the values is NaN, or
    /// only one is an exact infinity. An infinite result counts as the first number that is too large for
    /// the type.
    pub fn error(self, found: f64, exact: &Reference) -> f64 {
        let Reference { nearest, rest } = *exact;
        if nearest.is_nan() || nearest.is_infinite() || found.is_nan() {
            let same = found == nearest || (found.is_nan() && nearest.is_nan());
            // A value that is finite only in quadruple precision is not an exact infinity.
            return if same { 0.0 } else { f64::INFINITY };
        }
        if self.round(nearest) == found && found.is_infinite() {
            return 0.0;
        }
        if found.is_infinite() {
            let greatest = match self {
                Precision::Half => 65_536.0,
                Precision::Single => power_of_two(128),
                // Above the range of double precision: in units of the largest number.
                Precision::Double => {
                    let gap = f64::MAX - nearest.abs();
                    return gap / self.unit(f64::MAX) + 1.0;
                }
            };
            return (greatest - nearest.abs()) / self.unit(nearest);
        }
        ((found - nearest) - rest).abs() / self.unit(nearest)
    }
}

/// A power of two in the range of double precision, including denormals.
fn power_of_two(exponent: i32) -> f64 {
    if exponent < -1022 {
        f64::from_bits(1 << (exponent + 1074))
    } else {
        f64::from_bits(((exponent + 1023) as u64) << 52)
    }
}
