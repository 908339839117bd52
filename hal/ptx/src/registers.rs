//! Registers as words of 32 bits and as predicates.
//!
//! PTX has virtual registers with names that modules choose. In a wave, each register of a function occupies
//! consecutive words: one for up to 32 bits, two for 64, four for 128. A register of type `.pred` is one
//! predicate. The words of a kernel begin with `%w0`; each device function has other words, so that a word
//! belongs to one register of the module.

use crate::ScalarType;
use flipwave_arch::{RegisterClass, RegisterId, RegisterNames};

/// Name of the instruction set.
pub const INSTRUCTION_SET: &str = "ptx";

/// Words of 32 bits.
pub static WORDS: RegisterClass = RegisterClass {
    instruction_set: INSTRUCTION_SET,
    rank: 0,
    names: RegisterNames::Numbered("%w"),
    count: u16::MAX,
    bits: 32,
    is_per_lane: true,
    has_known_readers: true,
};

/// Predicates.
pub static PREDICATES: RegisterClass = RegisterClass {
    instruction_set: INSTRUCTION_SET,
    rank: 1,
    names: RegisterNames::Numbered("%p"),
    count: u16::MAX,
    bits: 1,
    is_per_lane: true,
    has_known_readers: true,
};

/// The carry flag of `add.cc` and similar instructions.
pub static CARRY: RegisterClass = RegisterClass {
    instruction_set: INSTRUCTION_SET,
    rank: 2,
    names: RegisterNames::Listed(&["%cc"]),
    count: 1,
    bits: 1,
    is_per_lane: true,
    has_known_readers: true,
};

/// Registers by the names that a module declares: see [`Code::register_named`](crate::Code::register_named).
pub static DECLARED: RegisterClass = RegisterClass {
    instruction_set: INSTRUCTION_SET,
    rank: 3,
    names: RegisterNames::Declared,
    count: u16::MAX,
    bits: 32,
    is_per_lane: true,
    has_known_readers: false,
};

/// The carry flag.
pub fn carry() -> RegisterId {
    RegisterId { class: &CARRY, number: 0 }
}

/// A declared register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// The first word, or the predicate.
    pub first: RegisterId,
    /// The declared type.
    pub kind: ScalarType,
}

impl Register {
    /// Number of words; 1 for predicates.
    pub fn words(self) -> u16 {
        words(self.kind)
    }

    /// The words, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = RegisterId> {
        (0..self.words()).filter_map(move |word| self.first.offset(word))
    }

    /// Returns `true` for a predicate.
    pub fn is_predicate(self) -> bool {
        self.kind == ScalarType::Pred
    }
}

/// Number of words of a register; 1 for predicates.
pub(crate) fn words(kind: ScalarType) -> u16 {
    kind.bits().div_ceil(32) as u16
}
