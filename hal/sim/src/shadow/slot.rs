//! Numbering of registers, for fast comparison of ranges.

use crate::instruction::Word;
use crate::wave::{Machine, RowIndex, ScalarIndex};
use flipwave_isa::{Half, Register, RegisterRange};
use std::ops::Range;

/// Vector registers have the numbers of their rows; scalar registers follow.
const FIRST_SCALAR: u16 = RowIndex::COUNT as u16;
const SCC: u16 = FIRST_SCALAR + ScalarIndex::COUNT as u16;

/// Consecutive registers of a wave, or half of a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    numbers: Range<u16>,
    half: Option<Half>,
}

impl Slots {
    /// Slots of registers that have storage.
    pub fn of(range: RegisterRange, machine: Machine) -> Option<Slots> {
        let first = match range.first {
            Register::Scc => SCC,
            register => match machine.row(register) {
                Some(row) => row.0,
                None => FIRST_SCALAR + u16::from(machine.scalar(register)?.0),
            },
        };
        Some(Slots { numbers: first..first + u16::from(range.words), half: None })
    }

    /// Selects half of the registers, if one is given.
    pub fn half(self, half: Option<Half>) -> Slots {
        Slots { half, ..self }
    }

    /// Returns `true` if both have a register, or half of one, in common.
    pub fn overlap(&self, other: &Slots) -> bool {
        let are_apart = matches!((self.half, other.half), (Some(ours), Some(its)) if ours != its);
        self.meet(other) && !are_apart
    }

    /// Returns `true` if both have a register in common, even if they name different halves.
    pub fn meet(&self, other: &Slots) -> bool {
        self.numbers.start < other.numbers.end && other.numbers.start < self.numbers.end
    }

    /// Rows of the vector registers.
    pub fn rows(&self) -> Range<usize> {
        let end = |at: u16| usize::from(at.min(FIRST_SCALAR));
        end(self.numbers.start)..end(self.numbers.end)
    }

    /// Indices of the scalar registers.
    pub fn scalars(&self) -> Range<usize> {
        let index = |at: u16| usize::from(at.clamp(FIRST_SCALAR, SCC) - FIRST_SCALAR);
        index(self.numbers.start)..index(self.numbers.end)
    }

    /// Returns `true` for whole registers, not halves.
    pub fn are_whole(&self) -> bool {
        self.half.is_none()
    }

    /// Returns `true` if SCC is included.
    pub fn is_scc(&self) -> bool {
        self.numbers.contains(&SCC)
    }
}

/// A set of registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SlotSet([u64; SlotSet::WORDS]);

impl SlotSet {
    const WORDS: usize = SCC as usize / 64 + 1;
    /// The empty set.
    pub const EMPTY: SlotSet = SlotSet([0; SlotSet::WORDS]);

    /// Adds registers; halves add the whole register.
    pub fn insert(&mut self, slots: &Slots) {
        slots.numbers.clone().for_each(|number| self.insert_number(number));
    }

    /// Adds a scalar register.
    pub fn insert_scalar(&mut self, index: ScalarIndex) {
        self.insert_number(FIRST_SCALAR + u16::from(index.0));
    }

    fn insert_number(&mut self, number: u16) {
        if let Some(word) = self.0.get_mut(usize::from(number / 64)) {
            *word |= 1 << (number % 64);
        }
    }

    /// Removes registers.
    pub fn remove(&mut self, slots: &Slots) {
        for number in slots.numbers.clone() {
            if let Some(word) = self.0.get_mut(usize::from(number / 64)) {
                *word &= !(1 << (number % 64));
            }
        }
    }

    /// The vector registers of the set.
    pub fn vectors(self) -> SlotSet {
        let mut vectors = self;
        vectors.remove(&Slots { numbers: FIRST_SCALAR..SCC + 1, half: None });
        vectors
    }

    fn has_number(&self, number: u16) -> bool {
        self.0.get(usize::from(number / 64)).is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// Returns `true` if the set contains any of these registers.
    pub fn has_any(&self, slots: &Slots) -> bool {
        slots.numbers.clone().any(|number| self.has_number(number))
    }

    /// Returns `true` if the set contains all of these registers.
    pub fn has_all(&self, slots: &Slots) -> bool {
        slots.numbers.clone().all(|number| self.has_number(number))
    }

    /// Returns `true` if the set contains the register of a source word.
    pub fn has_word(&self, word: Word) -> bool {
        match word {
            Word::Row(row) => self.has_number(row.place() as u16),
            Word::Scalar(index) => self.has_number(FIRST_SCALAR + u16::from(index.0)),
            Word::Scc => self.has_number(SCC),
            _ => false,
        }
    }

    /// The union of two sets.
    pub fn union(self, other: SlotSet) -> SlotSet {
        SlotSet(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// The intersection of two sets.
    pub fn intersection(self, other: SlotSet) -> SlotSet {
        SlotSet(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }
}
