//! Types of buffer elements and scalars: their values and memory layout.

use crate::file::number::Number;
use flipwave_arch::{Architecture, Float8};
use flipwave_sim::SmallFloat;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;

/// Type of a buffer's elements or of a scalar argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ElementType {
    U4,
    I4,
    /// E2M1 (OCP Microscaling Formats).
    F4,
    U8,
    I8,
    F8E4m3(Float8),
    F8E5m2(Float8),
    U16,
    I16,
    F16,
    Bf16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

/// Name of a type in a campaign file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[serde(expecting = "the name of a type, for example `f32`")]
pub(crate) enum ElementName {
    U4,
    I4,
    F4,
    U8,
    I8,
    /// The format used by the target's instructions on 8-bit floating-point numbers.
    F8E4m3,
    /// The format used by the target's instructions on 8-bit floating-point numbers.
    F8E5m2,
    #[serde(rename = "f8e4m3_ocp")]
    F8E4m3Ocp,
    #[serde(rename = "f8e4m3_fnuz")]
    F8E4m3Fnuz,
    #[serde(rename = "f8e5m2_ocp")]
    F8E5m2Ocp,
    #[serde(rename = "f8e5m2_fnuz")]
    F8E5m2Fnuz,
    U16,
    I16,
    F16,
    Bf16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

impl ElementName {
    /// Returns the type that the name denotes on a target.
    pub fn on(self, target: &dyn Architecture) -> ElementType {
        match self {
            ElementName::U4 => ElementType::U4,
            ElementName::I4 => ElementType::I4,
            ElementName::F4 => ElementType::F4,
            ElementName::U8 => ElementType::U8,
            ElementName::I8 => ElementType::I8,
            ElementName::F8E4m3 => ElementType::F8E4m3(target.float8()),
            ElementName::F8E5m2 => ElementType::F8E5m2(target.float8()),
            ElementName::F8E4m3Ocp => ElementType::F8E4m3(Float8::Ocp),
            ElementName::F8E4m3Fnuz => ElementType::F8E4m3(Float8::Fnuz),
            ElementName::F8E5m2Ocp => ElementType::F8E5m2(Float8::Ocp),
            ElementName::F8E5m2Fnuz => ElementType::F8E5m2(Float8::Fnuz),
            ElementName::U16 => ElementType::U16,
            ElementName::I16 => ElementType::I16,
            ElementName::F16 => ElementType::F16,
            ElementName::Bf16 => ElementType::Bf16,
            ElementName::U32 => ElementType::U32,
            ElementName::I32 => ElementType::I32,
            ElementName::F32 => ElementType::F32,
            ElementName::U64 => ElementType::U64,
            ElementName::I64 => ElementType::I64,
            ElementName::F64 => ElementType::F64,
        }
    }
}

/// Representation of a type's values.
enum Representation {
    Unsigned,
    /// Two's complement.
    Signed,
    /// A floating-point number of at most 16 bits.
    Small(SmallFloat),
    Single,
    Double,
}

/// One element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    Integer(i128),
    Float {
        value: f64,
        /// Position among the numbers of the type in ascending order. 0.0 and -0.0 both have position 0.
        rank: i64,
    },
}

impl ElementType {
    /// Returns the size of an element in bits: a multiple of 8, or 4, where two elements share a byte.
    pub fn bits(self) -> u32 {
        match self {
            ElementType::U4 | ElementType::I4 | ElementType::F4 => 4,
            ElementType::U8 | ElementType::I8 => 8,
            ElementType::F8E4m3(_) | ElementType::F8E5m2(_) => 8,
            ElementType::U16 | ElementType::I16 | ElementType::F16 | ElementType::Bf16 => 16,
            ElementType::U32 | ElementType::I32 | ElementType::F32 => 32,
            ElementType::U64 | ElementType::I64 | ElementType::F64 => 64,
        }
    }

    /// Returns the smallest number of bytes that contains a whole number of elements.
    pub(crate) fn unit(self) -> usize {
        (self.bits() as usize).div_ceil(8)
    }

    /// Returns the number of elements in [`ElementType::unit`] bytes.
    pub(crate) fn elements_of_unit(self) -> usize {
        8 * self.unit() / self.bits() as usize
    }

    /// Returns the size of `count` elements in bytes; `None` if it is not a whole number, or overflows.
    pub fn bytes_of(self, count: u64) -> Option<u64> {
        let in_unit = self.elements_of_unit() as u64;
        let units = count.is_multiple_of(in_unit).then_some(count / in_unit);
        units.and_then(|units| units.checked_mul(self.unit() as u64))
    }

    /// Returns the number of elements in `bytes` bytes; `None` if it is not a whole number.
    pub(crate) fn elements_in(self, bytes: u64) -> Option<u64> {
        let unit = self.unit() as u64;
        bytes.is_multiple_of(unit).then_some(bytes / unit * self.elements_of_unit() as u64)
    }

    fn representation(self) -> Representation {
        match self {
            ElementType::U4
            | ElementType::U8
            | ElementType::U16
            | ElementType::U32
            | ElementType::U64 => Representation::Unsigned,
            ElementType::I4
            | ElementType::I8
            | ElementType::I16
            | ElementType::I32
            | ElementType::I64 => Representation::Signed,
            ElementType::F4 => Representation::Small(SmallFloat::FP4),
            ElementType::F8E4m3(kind) => Representation::Small(SmallFloat::fp8(kind)),
            ElementType::F8E5m2(kind) => Representation::Small(SmallFloat::bf8(kind)),
            ElementType::F16 => Representation::Small(SmallFloat::F16),
            ElementType::Bf16 => Representation::Small(SmallFloat::BF16),
            ElementType::F32 => Representation::Single,
            ElementType::F64 => Representation::Double,
        }
    }

    /// Returns `true` for floating-point types.
    pub(crate) fn is_float(self) -> bool {
        !matches!(self.representation(), Representation::Unsigned | Representation::Signed)
    }

    /// Returns the name in campaign files and results, which does not depend on the target.
    pub fn name(self) -> &'static str {
        match self {
            ElementType::U4 => "u4",
            ElementType::I4 => "i4",
            ElementType::F4 => "f4",
            ElementType::U8 => "u8",
            ElementType::I8 => "i8",
            ElementType::F8E4m3(Float8::Ocp) => "f8e4m3_ocp",
            ElementType::F8E4m3(Float8::Fnuz) => "f8e4m3_fnuz",
            ElementType::F8E5m2(Float8::Ocp) => "f8e5m2_ocp",
            ElementType::F8E5m2(Float8::Fnuz) => "f8e5m2_fnuz",
            ElementType::U16 => "u16",
            ElementType::I16 => "i16",
            ElementType::F16 => "f16",
            ElementType::Bf16 => "bf16",
            ElementType::U32 => "u32",
            ElementType::I32 => "i32",
            ElementType::F32 => "f32",
            ElementType::U64 => "u64",
            ElementType::I64 => "i64",
            ElementType::F64 => "f64",
        }
    }

    /// Returns the smallest and the largest integer of an integer type.
    fn integer_range(self) -> Option<(i128, i128)> {
        match self.representation() {
            Representation::Unsigned => Some((0, (1 << self.bits()) - 1)),
            Representation::Signed => {
                let half = 1 << (self.bits() - 1);
                Some((-half, half - 1))
            }
            _ => None,
        }
    }

    /// Returns the bits of the smallest and the largest finite number.
    pub(crate) fn ends(self) -> [u64; 2] {
        let sign = 1 << (self.bits() - 1);
        let greatest = match self.representation() {
            Representation::Unsigned => return [0, u64::MAX >> (64 - self.bits())],
            Representation::Signed => return [sign, sign - 1],
            Representation::Small(format) => format.greatest().into(),
            Representation::Single => f32::MAX.to_bits().into(),
            Representation::Double => f64::MAX.to_bits(),
        };
        [greatest | sign, greatest]
    }

    /// Returns the bits of `number`. Floating-point types round to nearest.
    ///
    /// # Errors
    /// Returns the reason why the type cannot represent the number.
    pub(crate) fn encode(self, number: Number) -> Result<u64, String> {
        let value = match (self.integer_range(), number) {
            (Some((low, high)), Number::Integer(value)) if value < low || value > high => {
                return Err(format!("{value} does not fit {self} ({low} to {high})"));
            }
            (Some(_), Number::Integer(value)) => {
                return Ok(value as u64 & u64::MAX >> (64 - self.bits()));
            }
            (Some(_), Number::Float(value)) => {
                return Err(format!("{value} is not an integer, but the type is {self}"));
            }
            (None, number) => number.as_f64(),
        };
        Ok(match self.representation() {
            Representation::Small(format) => {
                let bits = format.nearest(value);
                if !is_near(format, value, bits) {
                    let greatest = format.decode(format.greatest());
                    return Err(format!("{value} does not fit {self} (-{greatest} to {greatest})"));
                }
                bits.into()
            }
            Representation::Single => (value as f32).to_bits().into(),
            _ => value.to_bits(),
        })
    }

    /// Returns the memory content of elements given by their bits: little-endian. If two share a byte,
    /// the first is in the low half.
    pub(crate) fn pack(self, elements: impl IntoIterator<Item = u64>) -> Vec<u8> {
        let elements = elements.into_iter();
        let max = elements.size_hint().1.unwrap_or_default();
        let mut bytes = Vec::with_capacity(max.div_ceil(self.elements_of_unit()) * self.unit());
        for (index, bits) in elements.enumerate() {
            match (index % self.elements_of_unit(), bytes.last_mut()) {
                (position, Some(last)) if position > 0 => *last |= (bits as u8) << self.bits(),
                _ => bytes.extend_from_slice(&bits.to_le_bytes()[..self.unit()]),
            }
        }
        bytes
    }

    /// Returns the bits of each element in [`ElementType::unit`] bytes, in order.
    pub(crate) fn unpack(self, unit: &[u8]) -> impl Iterator<Item = u64> + use<> {
        let mut word = [0; 8];
        word[..unit.len()].copy_from_slice(unit);
        let bits = self.bits();
        let word = u64::from_le_bytes(word);
        (0..self.elements_of_unit() as u32)
            .map(move |position| word >> (position * bits) & u64::MAX >> (64 - bits))
    }

    /// Formats the element at `index` of a buffer; returns an empty string beyond the end of the buffer.
    pub(crate) fn text_of(self, bytes: &[u8], index: u64) -> String {
        let in_unit = self.elements_of_unit();
        let (unit, position) = (index as usize / in_unit, index as usize % in_unit);
        let bits = bytes.chunks_exact(self.unit()).nth(unit);
        let value =
            bits.and_then(|unit| self.unpack(unit).nth(position)).map(|bits| self.decode(bits));
        match value {
            None => String::new(),
            Some(Value::Integer(value)) => value.to_string(),
            Some(Value::Float { value, .. }) => match self {
                ElementType::F64 => format!("{value:?}"),
                _ => format!("{:?}", value as f32),
            },
        }
    }

    /// Returns the value of an element with these bits.
    pub(crate) fn decode(self, bits: u64) -> Value {
        let value = match self.representation() {
            Representation::Unsigned => return Value::Integer(bits.into()),
            Representation::Signed => {
                // Shift the sign up and back down to extend it.
                let unused = 64 - self.bits();
                return Value::Integer((((bits << unused) as i64) >> unused).into());
            }
            Representation::Small(format) => format.decode(bits as u32).into(),
            Representation::Single => f32::from_bits(bits as u32).into(),
            Representation::Double => f64::from_bits(bits),
        };
        let sign = 1 << (self.bits() - 1);
        let magnitude = (bits & !sign) as i64;
        Value::Float { value, rank: if bits & sign == 0 { magnitude } else { -magnitude } }
    }
}

/// Returns `true` if `bits` is the rounded `value`, and not the replacement of a number outside the
/// format's range: NaN, an infinity, or the largest number if the format has neither.
fn is_near(format: SmallFloat, value: f64, bits: u32) -> bool {
    let found = f64::from(format.decode(bits));
    let greatest = format.greatest();
    let [before, last] = [greatest - 1, greatest].map(|bits| f64::from(format.decode(bits)));
    if value.is_finite() {
        found.is_finite() && value.abs() <= last + (last - before) / 2.0
    } else {
        found.is_nan() == value.is_nan() && !found.is_finite()
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(element: ElementType, number: Number) -> Result<Vec<u8>, String> {
        element.encode(number).map(|bits| element.pack([bits]))
    }

    #[test]
    fn integers_are_little_endian_and_range_checked() {
        assert_eq!(encoded(ElementType::I16, Number::Integer(-2)), Ok(vec![0xfe, 0xff]));
        assert_eq!(encoded(ElementType::U64, Number::Integer(u64::MAX.into())), Ok(vec![255; 8]));
        assert!(encoded(ElementType::U8, Number::Integer(256)).is_err());
        assert!(encoded(ElementType::U8, Number::Integer(-1)).is_err());
        assert!(encoded(ElementType::I32, Number::Float(1.0)).is_err());
        assert!(encoded(ElementType::I4, Number::Integer(-8)).is_ok());
        assert!(encoded(ElementType::I4, Number::Integer(8)).is_err());
        assert!(encoded(ElementType::U4, Number::Integer(16)).is_err());
    }

    #[test]
    fn floats_accept_integers_and_round_to_nearest() {
        assert_eq!(encoded(ElementType::F32, Number::Integer(1)), Ok(vec![0, 0, 0x80, 0x3f]));
        assert_eq!(encoded(ElementType::F16, Number::Float(1.0)), Ok(vec![0, 0x3c]));
        assert_eq!(encoded(ElementType::F64, Number::Float(0.1)), Ok(0.1f64.to_le_bytes().into()));
        assert_eq!(
            encoded(ElementType::F32, Number::Float(f64::INFINITY)),
            Ok(f32::INFINITY.to_le_bytes().into())
        );
        // 1 + 2^-8 lies between 1 and the next bfloat16; a little more rounds up.
        assert_eq!(encoded(ElementType::Bf16, Number::Float(1.00390625)), Ok(vec![0x80, 0x3f]));
        assert_eq!(encoded(ElementType::Bf16, Number::Float(1.00390626)), Ok(vec![0x81, 0x3f]));
    }

    /// Codes of 1.0 and of the largest number, from the definitions of the formats
    /// (OCP 8-bit Floating Point Specification; CDNA 3 ISA, "BF8 / FP8"; OCP Microscaling Formats).
    #[test]
    fn codes_of_8_and_4_bit_floats_match_the_specifications() {
        let one = |element| encoded(element, Number::Integer(1)).expect("a number")[0];
        let (ocp, fnuz) = (Float8::Ocp, Float8::Fnuz);
        let formats = [
            (ElementType::F8E4m3(ocp), 0x38, 448.0, 0x7e),
            (ElementType::F8E4m3(fnuz), 0x40, 240.0, 0x7f),
            (ElementType::F8E5m2(ocp), 0x3c, 57344.0, 0x7b),
            (ElementType::F8E5m2(fnuz), 0x40, 57344.0, 0x7f),
            (ElementType::F4, 0x2, 6.0, 0x7),
        ];
        for (element, code_of_one, greatest, code_of_greatest) in formats {
            assert_eq!(one(element), code_of_one, "{element}");
            assert_eq!(element.encode(Number::Float(greatest)), Ok(code_of_greatest), "{element}");
            // A slightly larger number is rounded down; twice as much is out of range.
            assert_eq!(
                element.encode(Number::Float(greatest * 1.03)),
                Ok(code_of_greatest),
                "{element}"
            );
            for beyond in [2.0 * greatest, -2.0 * greatest, 1e30] {
                let error = element.encode(Number::Float(beyond)).expect_err("too large");
                assert!(error.contains(&format!("-{greatest} to {greatest}")), "{error}");
            }
            assert_eq!(element.ends()[1], code_of_greatest, "{element}");
            let value = element.decode(code_of_greatest);
            assert!(matches!(value, Value::Float { value, .. } if value == greatest), "{element}");
        }
    }

    #[test]
    fn unsupported_infinity_and_nan_are_rejected() {
        let (ocp, fnuz) = (Float8::Ocp, Float8::Fnuz);
        let has = |element: ElementType, value| element.encode(Number::Float(value)).is_ok();
        for (element, infinity, nan) in [
            (ElementType::F4, false, false),
            (ElementType::F8E4m3(ocp), false, true),
            (ElementType::F8E4m3(fnuz), false, true),
            (ElementType::F8E5m2(ocp), true, true),
            (ElementType::F8E5m2(fnuz), false, true),
            (ElementType::F16, true, true),
        ] {
            assert_eq!(has(element, f64::INFINITY), infinity, "{element}");
            assert_eq!(has(element, f64::NEG_INFINITY), infinity, "{element}");
            assert_eq!(has(element, f64::NAN), nan, "{element}");
        }
    }

    #[test]
    fn every_code_of_small_formats_round_trips() {
        let (ocp, fnuz) = (Float8::Ocp, Float8::Fnuz);
        for element in [
            ElementType::F4,
            ElementType::F8E4m3(ocp),
            ElementType::F8E4m3(fnuz),
            ElementType::F8E5m2(ocp),
            ElementType::F8E5m2(fnuz),
            ElementType::F16,
            ElementType::Bf16,
        ] {
            for bits in 0..1 << element.bits() {
                let Value::Float { value, .. } = element.decode(bits) else {
                    panic!("{element}: no number")
                };
                if !value.is_nan() {
                    assert_eq!(element.encode(Number::Float(value)), Ok(bits), "{element}");
                }
            }
        }
    }

    #[test]
    fn first_of_two_elements_is_in_the_low_half_of_a_byte() {
        let bits = [1, -2, 7].map(|value| ElementType::I4.encode(Number::Integer(value)));
        let bits = bits.map(|bits| bits.expect("a number"));
        assert_eq!(ElementType::I4.pack(bits), [0xe1, 0x07]);
        let values: Vec<Value> =
            ElementType::I4.unpack(&[0xe1]).map(|bits| ElementType::I4.decode(bits)).collect();
        assert_eq!(values, [Value::Integer(1), Value::Integer(-2)]);
        assert_eq!(ElementType::U4.bytes_of(6), Some(3));
        assert_eq!(ElementType::U4.bytes_of(5), None);
        assert_eq!(ElementType::F4.elements_in(3), Some(6));
        assert_eq!(ElementType::F32.elements_in(6), None);
    }

    #[test]
    fn format_of_8_bit_floats_depends_on_the_target() {
        let on = |target: &str| {
            let target = flipwave_sim::Amdgpu::new(target.parse().expect("a target"));
            [ElementName::F8E4m3, ElementName::F8E5m2].map(|name| name.on(&target).name())
        };
        assert_eq!(on("gfx942"), ["f8e4m3_fnuz", "f8e5m2_fnuz"]);
        for ocp in ["gfx90a", "gfx950", "gfx1201"] {
            assert_eq!(on(ocp), ["f8e4m3_ocp", "f8e5m2_ocp"], "{ocp}");
        }
    }
}
