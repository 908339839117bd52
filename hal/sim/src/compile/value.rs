//! Values of compiled code, and their types.

use std::fmt;

/// A value by its name, or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A result of an expansion, by its number.
    Result(u32),
    /// The second result.
    Second(u32),
    /// The lanes for which it is not right.
    Doubts(u32),
    /// A value that is no result of a template.
    Named(u32),
    /// A number, the same in all lanes where it is a vector.
    Word(u32),
    /// The same of a vector.
    Splat(u32),
    /// A number of two words.
    Wide(u64),
    /// Zero or one.
    Bit(bool),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Result(number) => write!(f, "%r.{number}"),
            Value::Second(number) => write!(f, "%s.{number}"),
            Value::Doubts(number) => write!(f, "%n.{number}"),
            Value::Named(number) => write!(f, "%v{number}"),
            Value::Word(word) => write!(f, "{}", *word as i32),
            Value::Splat(word) => write!(f, "splat (i32 {})", *word as i32),
            Value::Wide(wide) => write!(f, "{}", *wide as i64),
            Value::Bit(bit) => write!(f, "{bit}"),
        }
    }
}

/// How many lanes a vector of compiled code has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// 8: half of AVX-512's, or AVX2's.
    Eight,
    /// 16: AVX-512's.
    Sixteen,
}

impl Shape {
    /// How many.
    pub fn lanes(self) -> u32 {
        match self {
            Shape::Eight => 8,
            Shape::Sixteen => 16,
        }
    }

    /// A type by its abbreviation.
    pub fn named(self, abbreviation: &str) -> &'static str {
        match (self, abbreviation) {
            (Shape::Eight, "W") => "<8 x i32>",
            (Shape::Eight, "D") => "<8 x i64>",
            (Shape::Eight, "F") => "<8 x float>",
            (Shape::Eight, "E") => "<8 x double>",
            (Shape::Eight, _) => "<8 x i1>",
            (Shape::Sixteen, "W") => "<16 x i32>",
            (Shape::Sixteen, "D") => "<16 x i64>",
            (Shape::Sixteen, "F") => "<16 x float>",
            (Shape::Sixteen, "E") => "<16 x double>",
            (Shape::Sixteen, _) => "<16 x i1>",
        }
    }
}
