//! Values of the IR.

use std::fmt;

/// A vector with a value per lane, or a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// The result of an instruction.
    Named {
        /// Number of the name.
        name: usize,
        /// Bits per lane.
        bits: u32,
    },
    /// A constant.
    Constant {
        /// The value.
        value: u64,
        /// Bits per lane.
        bits: u32,
    },
    /// The lanes of the path.
    Active,
    /// A scalar of 64 bits.
    Scalar(usize),
}

impl Value {
    /// Bits per lane.
    pub fn bits(self) -> u32 {
        match self {
            Value::Named { bits, .. } | Value::Constant { bits, .. } => bits,
            Value::Active => 1,
            Value::Scalar(_) => 64,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Named { name, .. } => write!(f, "%v{name}"),
            Value::Constant { value, bits: 1 } => write!(f, "splat (i1 {})", value & 1 != 0),
            Value::Constant { value, bits } => {
                let shift = 64 - bits;
                write!(f, "splat (i{bits} {})", (value << shift) as i64 >> shift)
            }
            Value::Active => write!(f, "%active"),
            Value::Scalar(name) => write!(f, "%s{name}"),
        }
    }
}

/// A vector type of 32 lanes.
pub(super) fn vector(bits: u32) -> String {
    format!("<32 x i{bits}>")
}

/// Metadata: the first branch is unlikely. Intrinsic functions need no declaration.
pub(super) const DECLARATIONS: &str = "!0 = !{!\"branch_weights\", i32 1, i32 1048575}\n";
