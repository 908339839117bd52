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

    /// Lines of IR that define `mask`: the lanes of which a number has bits, lowest first.
    pub fn mask_of_bits(self, mask: &str, bits: &str) -> String {
        match self {
            // Hosts with AVX-512 have masks of bits.
            Shape::Sixteen => format!("  {mask} = bitcast i16 {bits} to <16 x i1>\n"),
            // Others have words of ones and zeros, which LLVM makes in more steps of a number that it is
            // to take for a vector of bits.
            Shape::Eight => {
                let own = "<i32 1, i32 2, i32 4, i32 8, i32 16, i32 32, i32 64, i32 128>";
                format!(
                    "  {mask}.word = zext i8 {bits} to i32\n  \
                     {mask}.first = insertelement <8 x i32> poison, i32 {mask}.word, i64 0\n  \
                     {mask}.all = shufflevector <8 x i32> {mask}.first, <8 x i32> poison, \
                     <8 x i32> zeroinitializer\n  \
                     {mask}.own = and <8 x i32> {mask}.all, {own}\n  \
                     {mask} = icmp eq <8 x i32> {mask}.own, {own}\n"
                )
            }
        }
    }

    /// How words are stored of which a mask has selected some, the others being what was there: where hosts
    /// have no masks of bits, LLVM is not to make a masked store of it, which takes these dozens of steps.
    pub fn store_selected(self) -> &'static str {
        match self {
            Shape::Sixteen => "store",
            Shape::Eight => "store volatile",
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
