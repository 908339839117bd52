//! Formats of floating-point numbers in registers.

/// Format and position of a floating-point number in a register or a register pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum FloatFormat {
    /// The low half of a register.
    F16,
    /// The high half of a register.
    F16High,
    Bf16,
    Bf16High,
    F32,
    /// Two consecutive registers.
    F64,
}

impl FloatFormat {
    /// Number of registers that hold a number.
    pub fn words(self) -> u8 {
        if self == FloatFormat::F64 { 2 } else { 1 }
    }

    /// Bits of a register that belong to the number; `None` if it occupies two registers.
    pub fn bits_of_one_word(self) -> Option<u32> {
        match self {
            FloatFormat::F16 | FloatFormat::Bf16 => Some(0xffff),
            FloatFormat::F16High | FloatFormat::Bf16High => Some(0xffff_0000),
            FloatFormat::F32 => Some(u32::MAX),
            FloatFormat::F64 => None,
        }
    }
}

/// The encoding of the 8-bit floating-point types `fp8` and `bf8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Float8 {
    /// E4M3 with bias 8 and E5M2 with bias 16, both without infinities and with NaN in the encoding of
    /// minus zero (CDNA 3 ISA, "BF8 / FP8").
    Fnuz,
    /// E4M3 with bias 7 and without infinities, and E5M2 that follows IEEE 754 conventions (OCP 8-bit
    /// Floating Point Specification; CDNA 4 ISA, "Small Float Data Formats").
    Ocp,
}
