//! Serde helpers for columns with hexadecimal numbers.

use serde::de::{Deserialize, Deserializer, Error};

/// Serialises a word with at least eight digits: `0x00000400`.
pub(crate) mod word {
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(word: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{word:#010x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        super::number(deserializer)
    }
}

/// Serialises an address without leading zeros: `0x1a9c`; `None` is an empty column.
pub(crate) mod address {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(
        address: &Option<u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match address {
            Some(address) => serializer.collect_str(&format_args!("{address:#x}")),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u64>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let parse = |text: String| {
            super::parse(&text).ok_or_else(|| D::Error::custom(super::invalid(&text)))
        };
        text.map(parse).transpose()
    }
}

fn parse(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_number.then(|| u64::from_str_radix(digits, 16).ok())?
}

fn invalid(text: &str) -> String {
    format!("invalid number `{text}`; expected hexadecimal digits after 0x")
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| D::Error::custom(invalid(&text)))
}
