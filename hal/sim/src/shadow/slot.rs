//! Registers as numbers, so that ranges of them are compared quickly.

use crate::wave::{Machine, RowIndex, ScalarIndex};
use flipwave_isa::{Half, Register, RegisterRange};
use std::ops::Range;

/// Numbers of vector registers are those of their rows; scalar registers follow.
const FIRST_SCALAR: u16 = RowIndex::COUNT as u16;
const SCC: u16 = FIRST_SCALAR + ScalarIndex::COUNT as u16;

/// Consecutive registers of a wave, or half of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    numbers: Range<u16>,
    half: Option<Half>,
}

impl Slots {
    /// The slots of registers that have storage.
    pub fn of(range: RegisterRange, machine: Machine) -> Option<Slots> {
        let first = match range.first {
            Register::Scc => SCC,
            own => match machine.row(own) {
                Some(row) => row.0,
                None => FIRST_SCALAR + u16::from(ScalarIndex::of(own)?.0),
            },
        };
        Some(Slots { numbers: first..first + u16::from(range.words), half: None })
    }

    /// Half of them, if one is given.
    pub fn half(self, half: Option<Half>) -> Slots {
        Slots { half, ..self }
    }

    /// Whether the two have a register, or half of one, in common.
    pub fn overlap(&self, other: &Slots) -> bool {
        let are_apart = matches!((self.half, other.half), (Some(own), Some(its)) if own != its);
        self.numbers.start < other.numbers.end
            && other.numbers.start < self.numbers.end
            && !are_apart
    }

    /// The rows of vector registers.
    pub fn rows(&self) -> Range<usize> {
        let end = |at: u16| usize::from(at.min(FIRST_SCALAR));
        end(self.numbers.start)..end(self.numbers.end)
    }

    /// The indices of scalar registers.
    pub fn scalars(&self) -> Range<usize> {
        let index = |at: u16| usize::from(at.clamp(FIRST_SCALAR, SCC) - FIRST_SCALAR);
        index(self.numbers.start)..index(self.numbers.end)
    }

    /// Whether SCC is meant.
    pub fn is_scc(&self) -> bool {
        self.numbers.contains(&SCC)
    }
}
