//! Numbers in campaign files.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A number in a campaign file: `3` is an integer, `3.0` is not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Written without a point or exponent.
    Integer(i128),
    /// Any other number, including `.inf` and `.nan`.
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
    /// Returns the nearest double-precision number.
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

    #[test]
    fn notation_determines_the_kind_of_number() {
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
