//! Conditions that packets wait for.

/// Comparison of a value with a reference, in the encoding of PM4's `WAIT_REG_MEM` and SDMA's
/// `POLL_REGMEM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Always,
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

impl Comparison {
    /// Decodes the low three bits. The reserved encoding 7 is [`Comparison::Greater`].
    pub fn from_bits(bits: u32) -> Comparison {
        match bits & 7 {
            0 => Comparison::Always,
            1 => Comparison::Less,
            2 => Comparison::LessOrEqual,
            3 => Comparison::Equal,
            4 => Comparison::NotEqual,
            5 => Comparison::GreaterOrEqual,
            _ => Comparison::Greater,
        }
    }

    /// Returns `true` if the comparison holds for unsigned numbers.
    pub fn holds(self, value: u32, reference: u32) -> bool {
        match self {
            Comparison::Always => true,
            Comparison::Less => value < reference,
            Comparison::LessOrEqual => value <= reference,
            Comparison::Equal => value == reference,
            Comparison::NotEqual => value != reference,
            Comparison::GreaterOrEqual => value >= reference,
            Comparison::Greater => value > reference,
        }
    }
}
