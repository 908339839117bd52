//! Literals (PTX ISA, "Constants").

use std::fmt;

/// A literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    /// An integer.
    Integer {
        /// The value.
        value: u64,
        /// The radix in the text.
        radix: Radix,
        /// `true` for the suffix `U`.
        is_unsigned: bool,
    },
    /// `0f` and the bits of a number in single precision.
    Single(u32),
    /// `0d` and the bits of a number in double precision, or a decimal floating-point number.
    Double(u64),
}

/// The radix of an integer literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Radix {
    Decimal,
    Hexadecimal,
    Octal,
    Binary,
}

impl Number {
    /// A decimal integer.
    pub fn decimal(value: u64) -> Number {
        Number::Integer { value, radix: Radix::Decimal, is_unsigned: false }
    }

    /// Parses a literal; `None` if it is invalid or does not fit in 64 bits.
    pub fn parse(text: &str) -> Option<Number> {
        if let Some(digits) = strip(text, ["0f", "0F"]) {
            return (digits.len() == 8)
                .then(|| u32::from_str_radix(digits, 16).ok())?
                .map(Number::Single);
        }
        if let Some(digits) = strip(text, ["0d", "0D"]) {
            return (digits.len() == 16)
                .then(|| u64::from_str_radix(digits, 16).ok())?
                .map(Number::Double);
        }
        let is_hexadecimal = strip(text, ["0x", "0X"]).is_some();
        if !is_hexadecimal && text.contains(['.', 'e', 'E']) {
            let has_only_digits = text.bytes().all(|byte| b"0123456789.eE+-".contains(&byte));
            return text
                .parse()
                .ok()
                .filter(|_| has_only_digits)
                .map(|value: f64| Number::Double(value.to_bits()));
        }
        let (digits, is_unsigned) = match text.strip_suffix(['U', 'u']) {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        let (digits, base, radix) = if let Some(digits) = strip(digits, ["0x", "0X"]) {
            (digits, 16, Radix::Hexadecimal)
        } else if let Some(digits) = strip(digits, ["0b", "0B"]) {
            (digits, 2, Radix::Binary)
        } else if digits.len() > 1 && digits.starts_with('0') {
            (&digits[1..], 8, Radix::Octal)
        } else {
            (digits, 10, Radix::Decimal)
        };
        let is_plain = digits.bytes().all(|digit| digit.is_ascii_alphanumeric());
        let value = u64::from_str_radix(digits, base).ok().filter(|_| is_plain)?;
        Some(Number::Integer { value, radix, is_unsigned })
    }
}

fn strip<'a>(text: &'a str, prefixes: [&str; 2]) -> Option<&'a str> {
    prefixes.iter().find_map(|prefix| text.strip_prefix(prefix))
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Number::Single(bits) => write!(f, "0f{bits:08X}"),
            Number::Double(bits) => write!(f, "0d{bits:016X}"),
            Number::Integer { value, radix, is_unsigned } => {
                match radix {
                    Radix::Decimal => write!(f, "{value}")?,
                    Radix::Hexadecimal => write!(f, "0x{value:X}")?,
                    Radix::Octal => write!(f, "0{value:o}")?,
                    Radix::Binary => write!(f, "0b{value:b}")?,
                }
                f.write_str(if is_unsigned { "U" } else { "" })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_print_as_they_were() {
        for text in ["0", "17", "0x1FU", "017", "0b101U", "0f3F800000", "0d3FF0000000000000"] {
            assert_eq!(Number::parse(text).map(|number| number.to_string()).as_deref(), Some(text));
        }
        assert_eq!(Number::parse("1.5"), Some(Number::Double(1.5f64.to_bits())));
        assert_eq!(Number::parse("25e-1"), Some(Number::Double(2.5f64.to_bits())));
        let most =
            Number::Integer { value: u64::MAX, radix: Radix::Hexadecimal, is_unsigned: false };
        assert_eq!(Number::parse("0xffffffffffffffff"), Some(most));
        for text in ["0x", "0b2", "08", "0f3F80", "12a", "0x10000000000000000", "1_0", "inf", ""] {
            assert_eq!(Number::parse(text), None, "{text}");
        }
    }
}
