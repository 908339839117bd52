//! Registers as numbers, so that ranges of them are compared quickly.

use crate::instruction::Word;
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
                None => FIRST_SCALAR + u16::from(machine.scalar(own)?.0),
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
        self.meet(other) && !are_apart
    }

    /// Whether the two have a register in common, of which they may name different halves.
    pub fn meet(&self, other: &Slots) -> bool {
        self.numbers.start < other.numbers.end && other.numbers.start < self.numbers.end
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

    /// Whether they are registers as a whole, not halves.
    pub fn are_whole(&self) -> bool {
        self.half.is_none()
    }

    /// Whether SCC is meant.
    pub fn is_scc(&self) -> bool {
        self.numbers.contains(&SCC)
    }
}

/// A set of registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SlotSet([u64; SlotSet::WORDS]);

impl SlotSet {
    const WORDS: usize = SCC as usize / 64 + 1;
    /// None.
    pub const EMPTY: SlotSet = SlotSet([0; SlotSet::WORDS]);

    /// Adds registers; all of those of which halves are meant.
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

    /// Takes registers out.
    pub fn remove(&mut self, slots: &Slots) {
        for number in slots.numbers.clone() {
            if let Some(word) = self.0.get_mut(usize::from(number / 64)) {
                *word &= !(1 << (number % 64));
            }
        }
    }

    /// Those that are vector registers.
    pub fn vectors(self) -> SlotSet {
        let mut own = self;
        own.remove(&Slots { numbers: FIRST_SCALAR..SCC + 1, half: None });
        own
    }

    fn has_number(&self, number: u16) -> bool {
        self.0.get(usize::from(number / 64)).is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// Whether one of these registers is in it.
    pub fn has_any(&self, slots: &Slots) -> bool {
        slots.numbers.clone().any(|number| self.has_number(number))
    }

    /// Whether all of these registers are in it.
    pub fn has_all(&self, slots: &Slots) -> bool {
        slots.numbers.clone().all(|number| self.has_number(number))
    }

    /// Whether it has the register that a word of a source comes from.
    pub fn has_word(&self, word: Word) -> bool {
        match word {
            Word::Row(row) => self.has_number(row.place() as u16),
            Word::Scalar(index) => self.has_number(FIRST_SCALAR + u16::from(index.0)),
            Word::Scc => self.has_number(SCC),
            _ => false,
        }
    }

    /// Those that are in one of two sets.
    pub fn union(self, other: SlotSet) -> SlotSet {
        SlotSet(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// Those that are in both.
    pub fn intersection(self, other: SlotSet) -> SlotSet {
        SlotSet(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }
}
