//! Columns that are hexadecimal numbers with `0x` in front.

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use std::fmt;

/// 32-bit words, always eight digits: `0x00000400`.
pub(crate) mod word {
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(word: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{word:#010x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
        let number = super::number(deserializer)?;
        u32::try_from(number)
            .map_err(|_| serde::de::Error::custom(format!("{number:#x} does not fit 32 bits")))
    }
}

/// Addresses, as many digits as they need: `0x1a9c`.
pub(crate) mod address {
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(address: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{address:#x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        super::number(deserializer)
    }
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    struct Hexadecimal;

    impl Visitor<'_> for Hexadecimal {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a hexadecimal number with 0x in front")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
            text.strip_prefix("0x")
                .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
                .and_then(|digits| u64::from_str_radix(digits, 16).ok())
                .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
        }
    }

    deserializer.deserialize_str(Hexadecimal)
}
