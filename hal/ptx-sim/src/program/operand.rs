//! Operands as places in the registers of a wave.

use crate::Gap;
use flipwave_ptx::{Argument, CARRY, Register, ScalarType, SpecialOperand};

/// An operand that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// One word, whose lowest bits count.
    Word {
        /// Number of the word.
        word: u16,
        /// Number of bits.
        bits: u32,
    },
    /// Two words.
    Pair(u16),
    /// A predicate.
    Predicate {
        /// Number of the predicate.
        number: u16,
        /// `true` for its inverse.
        is_negated: bool,
    },
    /// The carry flag.
    Carry,
    /// A constant or the address of a variable.
    Constant(u64),
    /// A special register.
    Special(SpecialOperand),
    /// The address of a variable in the frame.
    Frame(u64),
}

/// An operand that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// The lowest bits of a word; others become zero.
    Word {
        /// Number of the word.
        word: u16,
        /// Number of bits.
        bits: u32,
    },
    /// Two words.
    Pair(u16),
    /// A predicate.
    Predicate(u16),
    /// The carry flag.
    Carry,
    /// The result is ignored.
    Sink,
}

impl Destination {
    /// The register as a source; `None` for results that are ignored.
    pub fn source(self) -> Option<Source> {
        Some(match self {
            Destination::Word { word, bits } => Source::Word { word, bits },
            Destination::Pair(word) => Source::Pair(word),
            Destination::Predicate(number) => Source::Predicate { number, is_negated: false },
            Destination::Carry => Source::Carry,
            Destination::Sink => return None,
        })
    }
}

/// Addresses of variables and functions.
pub(crate) trait Addresses {
    /// The address of a symbol in its state space.
    fn address(&self, symbol: &flipwave_ptx::Symbol) -> Result<u64, Gap>;
}

/// A source for an operand; constants have the type `kind`.
pub(super) fn source(
    argument: &Argument,
    kind: ScalarType,
    addresses: &dyn Addresses,
) -> Result<Source, Gap> {
    Ok(match argument {
        Argument::Register(register) => register_source(*register, kind),
        Argument::Not(register) => {
            Source::Predicate { number: register.first.number, is_negated: true }
        }
        Argument::Constant(constant) => Source::Constant(constant.bits(kind)),
        Argument::Special(special) => Source::Special(*special),
        Argument::Symbol(symbol, offset) => {
            Source::Constant(addresses.address(symbol)?.wrapping_add(*offset as u64))
        }
        Argument::Frame(offset) => Source::Frame(*offset),
        // The address of a kernel parameter in its state space.
        Argument::Parameter(offset) => Source::Constant(*offset),
        Argument::Sink => Source::Constant(0),
        _ => return Err(Gap::because("this operand is not supported")),
    })
}

/// A source for a register, of which an operation of type `kind` reads the lowest bits.
pub(crate) fn register_source(register: Register, kind: ScalarType) -> Source {
    let number = register.first.number;
    if register.is_predicate() {
        return Source::Predicate { number, is_negated: false };
    }
    let bits = match kind {
        ScalarType::Pred => 32,
        kind => kind.bits().min(register.kind.bits()),
    };
    if bits <= 32 { Source::Word { word: number, bits } } else { Source::Pair(number) }
}

/// A destination for an operand.
pub(super) fn destination(argument: &Argument) -> Result<Destination, Gap> {
    Ok(match argument {
        Argument::Register(register) => register_destination(*register),
        Argument::Sink => Destination::Sink,
        _ => return Err(Gap::because("this destination is not supported")),
    })
}

pub(crate) fn register_destination(register: Register) -> Destination {
    let (number, bits) = (register.first.number, register.kind.bits());
    match register.first.class.rank {
        rank if rank == CARRY.rank => Destination::Carry,
        _ if register.is_predicate() => Destination::Predicate(number),
        _ if bits <= 32 => Destination::Word { word: number, bits },
        _ => Destination::Pair(number),
    }
}

/// Operands of a vector, or the operand itself; registers of 128 bits are two of 64.
pub(super) fn elements(argument: &Argument) -> Vec<Argument> {
    match argument {
        Argument::Vector(parts) => parts.iter().flat_map(elements).collect(),
        Argument::Register(register) if register.kind == ScalarType::B128 => {
            let half = |words: u16| {
                let first = register.first.offset(words).unwrap_or(register.first);
                Argument::Register(Register { first, kind: ScalarType::B64 })
            };
            vec![half(0), half(2)]
        }
        other => vec![other.clone()],
    }
}
