//! Types of buffer elements and scalars, and numbers as a campaign file writes them.

use half::f16;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Type of a buffer's elements or of a scalar argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[serde(expecting = "the name of a type, for example `f32`")]
#[allow(missing_docs)]
pub enum ElementType {
    U8,
    I8,
    U16,
    I16,
    F16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

impl ElementType {
    /// Size of one element in bytes.
    pub fn size(self) -> usize {
        match self {
            ElementType::U8 | ElementType::I8 => 1,
            ElementType::U16 | ElementType::I16 | ElementType::F16 => 2,
            ElementType::U32 | ElementType::I32 | ElementType::F32 => 4,
            ElementType::U64 | ElementType::I64 | ElementType::F64 => 8,
        }
    }

    /// Whether elements are floating-point numbers.
    pub(crate) fn is_float(self) -> bool {
        matches!(self, ElementType::F16 | ElementType::F32 | ElementType::F64)
    }

    /// The name in campaign files.
    pub fn name(self) -> &'static str {
        match self {
            ElementType::U8 => "u8",
            ElementType::I8 => "i8",
            ElementType::U16 => "u16",
            ElementType::I16 => "i16",
            ElementType::F16 => "f16",
            ElementType::U32 => "u32",
            ElementType::I32 => "i32",
            ElementType::F32 => "f32",
            ElementType::U64 => "u64",
            ElementType::I64 => "i64",
            ElementType::F64 => "f64",
        }
    }

    /// Smallest and largest integer of an integer type.
    pub(crate) fn integer_range(self) -> Option<(i128, i128)> {
        Some(match self {
            ElementType::U8 => (0, u8::MAX.into()),
            ElementType::I8 => (i8::MIN.into(), i8::MAX.into()),
            ElementType::U16 => (0, u16::MAX.into()),
            ElementType::I16 => (i16::MIN.into(), i16::MAX.into()),
            ElementType::U32 => (0, u32::MAX.into()),
            ElementType::I32 => (i32::MIN.into(), i32::MAX.into()),
            ElementType::U64 => (0, u64::MAX.into()),
            ElementType::I64 => (i64::MIN.into(), i64::MAX.into()),
            ElementType::F16 | ElementType::F32 | ElementType::F64 => return None,
        })
    }

    /// The least and the greatest finite number.
    pub(crate) fn ends(self) -> (Number, Number) {
        let greatest = match self {
            ElementType::F16 => f16::MAX.to_f64(),
            ElementType::F32 => f32::MAX.into(),
            _ => f64::MAX,
        };
        match self.integer_range() {
            Some((least, greatest)) => (Number::Integer(least), Number::Integer(greatest)),
            None => (Number::Float(-greatest), Number::Float(greatest)),
        }
    }

    /// Appends `number` to `bytes`, little-endian. Floating-point types round to nearest.
    ///
    /// # Errors
    /// Says why the number is none of this type.
    pub(crate) fn encode(self, number: Number, bytes: &mut Vec<u8>) -> Result<(), String> {
        match (self.integer_range(), number) {
            (Some((low, high)), Number::Integer(value)) => {
                if value < low || value > high {
                    return Err(format!("{value} does not fit {self} ({low} to {high})"));
                }
                bytes.extend_from_slice(&value.to_le_bytes()[..self.size()]);
            }
            (Some(_), Number::Float(value)) => {
                return Err(format!("{value} is no integer, but the type is {self}"));
            }
            (None, number) => match self {
                ElementType::F16 => {
                    bytes.extend_from_slice(&f16::from_f64(number.as_f64()).to_le_bytes());
                }
                ElementType::F32 => {
                    bytes.extend_from_slice(&(number.as_f64() as f32).to_le_bytes());
                }
                _ => bytes.extend_from_slice(&number.as_f64().to_le_bytes()),
            },
        }
        Ok(())
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A number as a campaign file writes it: `3` is an integer, `3.0` is not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Written without a point or exponent.
    Integer(i128),
    /// Any other number, `.inf` and `.nan` included.
    Float(f64),
}

impl JsonSchema for Number {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number"})
    }
}

impl Number {
    /// The nearest double.
    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Number::Integer(value) => value as f64,
            Number::Float(value) => value,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Integer(value) => value.fmt(f),
            Number::Float(value) => write!(f, "{value:?}"),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        struct NumberVisitor;

        impl Visitor<'_> for NumberVisitor {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Number, E> {
                Ok(Number::Integer(value.into()))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Number, E> {
                Ok(Number::Integer(value.into()))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Number, E> {
                Ok(Number::Float(value))
            }
        }

        deserializer.deserialize_any(NumberVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(element: ElementType, number: Number) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        element.encode(number, &mut bytes).map(|()| bytes)
    }

    #[test]
    fn integers_are_little_endian_and_checked() {
        assert_eq!(encoded(ElementType::I16, Number::Integer(-2)), Ok(vec![0xfe, 0xff]));
        assert_eq!(encoded(ElementType::U64, Number::Integer(u64::MAX.into())), Ok(vec![255; 8]));
        assert!(encoded(ElementType::U8, Number::Integer(256)).is_err());
        assert!(encoded(ElementType::U8, Number::Integer(-1)).is_err());
        assert!(encoded(ElementType::I32, Number::Float(1.0)).is_err());
    }

    #[test]
    fn floats_take_integers_and_round_to_nearest() {
        assert_eq!(encoded(ElementType::F32, Number::Integer(1)), Ok(vec![0, 0, 0x80, 0x3f]));
        assert_eq!(encoded(ElementType::F16, Number::Float(1.0)), Ok(vec![0, 0x3c]));
        assert_eq!(encoded(ElementType::F64, Number::Float(0.1)), Ok(0.1f64.to_le_bytes().into()));
        assert_eq!(
            encoded(ElementType::F32, Number::Float(f64::INFINITY)),
            Ok(f32::INFINITY.to_le_bytes().into())
        );
    }

    #[test]
    fn the_notation_decides_what_a_number_is() {
        let numbers: Vec<Number> =
            serde_yaml::from_str("[3, -3, 3.0, 1e-5, 18446744073709551615]").expect("numbers");
        assert_eq!(
            numbers,
            [
                Number::Integer(3),
                Number::Integer(-3),
                Number::Float(3.0),
                Number::Float(1e-5),
                Number::Integer(u64::MAX.into()),
            ]
        );
    }
}
