//! IR values and their types.

use std::fmt;

/// A named value or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// First result of a template expansion, by its number.
    Result(u32),
    /// Second result of a template expansion.
    Second(u32),
    /// Lanes for which a template's result is wrong, so that they bail out.
    Bailout(u32),
    /// A value that is not a result of a template.
    Named(u32),
    /// A 32-bit constant.
    Word(u32),
    /// A vector with the same 32-bit constant in all lanes.
    Splat(u32),
    /// A 64-bit constant.
    Wide(u64),
    /// A 1-bit constant.
    Bit(bool),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Result(number) => write!(f, "%r.{number}"),
            Value::Second(number) => write!(f, "%s.{number}"),
            Value::Bailout(number) => write!(f, "%n.{number}"),
            Value::Named(number) => write!(f, "%v{number}"),
            Value::Word(word) => write!(f, "{}", *word as i32),
            Value::Splat(word) => write!(f, "splat (i32 {})", *word as i32),
            Value::Wide(wide) => write!(f, "{}", *wide as i64),
            Value::Bit(bit) => write!(f, "{bit}"),
        }
    }
}

/// Number of lanes of a vector of compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// 8 lanes: an AVX2 vector, or half of an AVX-512 one.
    Eight,
    /// 16 lanes: an AVX-512 vector.
    Sixteen,
}

impl Shape {
    /// Number of lanes.
    pub fn lanes(self) -> u32 {
        match self {
            Shape::Eight => 8,
            Shape::Sixteen => 16,
        }
    }

    /// IR that defines the lane mask `mask` from the integer `bits`, lowest lane first.
    pub fn mask_of_bits(self, mask: &str, bits: &str) -> String {
        match self {
            // Hosts with AVX-512 have bit masks.
            Shape::Sixteen => format!("  {mask} = bitcast i16 {bits} to <16 x i1>\n"),
            // Other hosts have masks of whole words, for which LLVM needs more steps if it converts
            // an integer to a vector of bits.
            Shape::Eight => {
                let lane_bits = "<i32 1, i32 2, i32 4, i32 8, i32 16, i32 32, i32 64, i32 128>";
                format!(
                    "  {mask}.word = zext i8 {bits} to i32\n  \
                     {mask}.first = insertelement <8 x i32> poison, i32 {mask}.word, i64 0\n  \
                     {mask}.all = shufflevector <8 x i32> {mask}.first, <8 x i32> poison, \
                     <8 x i32> zeroinitializer\n  \
                     {mask}.lane = and <8 x i32> {mask}.all, {lane_bits}\n  \
                     {mask} = icmp eq <8 x i32> {mask}.lane, {lane_bits}\n"
                )
            }
        }
    }

    /// The store instruction for words of which a mask has selected some and the others are
    /// unchanged. On hosts without bit masks the store is volatile, since LLVM would make a masked
    /// store of it, which takes dozens of instructions.
    pub fn store_selected(self) -> &'static str {
        match self {
            Shape::Sixteen => "store",
            Shape::Eight => "store volatile",
        }
    }

    /// The vector type that an abbreviation stands for.
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
