//! Parser of the `key=value` fields of a site's text.

use super::SiteError;
use std::str::FromStr;

/// The remaining fields.
pub(super) struct Fields<'a> {
    rest: std::iter::Peekable<std::str::SplitAsciiWhitespace<'a>>,
}

impl<'a> Fields<'a> {
    /// Splits a text into fields separated by whitespace.
    pub fn of(text: &'a str) -> Fields<'a> {
        Fields { rest: text.split_ascii_whitespace().peekable() }
    }

    /// The key of the next field.
    pub fn key(&mut self) -> Option<&'a str> {
        self.rest.peek().and_then(|field| field.split('=').next())
    }

    /// The next field, or `the end`.
    pub fn peek(&mut self) -> &'a str {
        self.rest.peek().copied().unwrap_or("the end")
    }

    /// Consumes the next field, which must have this key, and returns its value.
    pub fn value(&mut self, key: &'static str) -> Result<&'a str, SiteError> {
        let found = self.rest.next();
        found.and_then(|field| field.strip_prefix(key)?.strip_prefix('=')).ok_or_else(|| {
            SiteError::Field { expected: key, found: found.unwrap_or("the end").to_owned() }
        })
    }

    /// Consumes a field and converts its value with `read`.
    pub fn read<T>(
        &mut self,
        key: &'static str,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, SiteError> {
        let text = self.value(key)?;
        read(text).ok_or_else(|| SiteError::Value { key, text: text.to_owned(), expected })
    }

    /// Consumes a field with a decimal number.
    pub fn number<N: FromStr>(&mut self, key: &'static str) -> Result<N, SiteError> {
        let expected = match size_of::<N>() {
            1 => "a number from 0 to 255",
            4 => "a number from 0 to 4294967295",
            _ => "a number from 0 to 18446744073709551615",
        };
        self.read(key, expected, decimal)
    }

    /// Consumes a field with a hexadecimal number.
    pub fn hexadecimal<N: TryFrom<u64>>(&mut self, key: &'static str) -> Result<N, SiteError> {
        let expected = match size_of::<N>() {
            4 => "a hexadecimal number of 32 bits or fewer with 0x in front",
            _ => "a hexadecimal number of 64 bits or fewer with 0x in front",
        };
        self.read(key, expected, hexadecimal)
    }

    /// Checks that no field remains.
    pub fn end(&mut self) -> Result<(), SiteError> {
        match self.rest.next() {
            None => Ok(()),
            Some(field) => {
                Err(SiteError::Field { expected: "nothing more", found: field.to_owned() })
            }
        }
    }
}

/// Parses a decimal number of digits only; `parse` alone would accept a sign.
pub(super) fn decimal<N: FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Parses a hexadecimal number with the prefix 0x.
pub(super) fn hexadecimal<N: TryFrom<u64>>(text: &str) -> Option<N> {
    let digits = text.strip_prefix("0x")?;
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok().and_then(|number| N::try_from(number).ok())
}
