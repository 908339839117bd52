//! Registers of a wave: words and predicates of 32 lanes.

use crate::compute::{LANES, Row};
use crate::program::{Destination, Source};
use flipwave_arch::{Lane, RegisterId};
use flipwave_ptx::{CARRY, FunctionCode, PREDICATES, RegisterCounts, WORDS};

/// A word of each lane, aligned for vectors of the host.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Word(pub [u32; LANES]);

impl Word {
    /// Zero in all lanes.
    pub const ZERO: Word = Word([0; LANES]);
}

/// The registers of a wave. Predicates are 0 or 1.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Registers {
    words: Vec<Word>,
    predicates: Vec<Word>,
    carry: Word,
}

impl Registers {
    /// Registers that are zero.
    pub fn new(counts: RegisterCounts) -> Registers {
        Registers {
            words: vec![Word::ZERO; counts.words.into()],
            predicates: vec![Word::ZERO; counts.predicates.into()],
            carry: Word::ZERO,
        }
    }

    /// The lanes of a register; `None` if the wave does not have it.
    pub fn lanes(&self, register: RegisterId) -> Option<&[u32; LANES]> {
        let number = usize::from(register.number);
        let word = match register.class.rank {
            rank if rank == WORDS.rank => self.words.get(number),
            rank if rank == PREDICATES.rank => self.predicates.get(number),
            rank if rank == CARRY.rank => Some(&self.carry),
            _ => None,
        };
        word.map(|word| &word.0)
    }

    /// Writes one lane of a register; returns `false` if the wave does not have it.
    pub fn set(&mut self, register: RegisterId, lane: Lane, value: u32) -> bool {
        let number = usize::from(register.number);
        let (row, value) = match register.class.rank {
            rank if rank == WORDS.rank => (self.words.get_mut(number), value),
            rank if rank == PREDICATES.rank => (self.predicates.get_mut(number), value & 1),
            rank if rank == CARRY.rank => (Some(&mut self.carry), value & 1),
            _ => (None, value),
        };
        row.and_then(|row| row.0.get_mut(usize::from(lane.0))).map(|word| *word = value).is_some()
    }

    /// Host addresses of the first word, of the first predicate and of the carry.
    pub fn pointers(&mut self) -> [*mut Word; 3] {
        [self.words.as_mut_ptr(), self.predicates.as_mut_ptr(), &raw mut self.carry]
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        (self.words.len() + self.predicates.len() + 1) * size_of::<Word>()
    }

    /// Lanes whose predicate is true.
    pub fn predicate(&self, number: u16) -> u32 {
        let row = self.predicates.get(usize::from(number)).unwrap_or(&Word::ZERO);
        row.0.iter().rev().fold(0, |mask, bit| mask << 1 | bit & 1)
    }

    /// Reads a source that is a register; `None` for other sources.
    #[inline]
    pub fn read(&self, source: Source) -> Option<Row> {
        let word = |number: u16| &self.words.get(usize::from(number)).unwrap_or(&Word::ZERO).0;
        let mut row = [0; LANES];
        match source {
            Source::Word { word: number, bits } => {
                let mask = u32::MAX >> (32 - bits.clamp(1, 32));
                for (value, word) in row.iter_mut().zip(word(number)) {
                    *value = (word & mask).into();
                }
            }
            Source::Pair(number) => {
                let (low, high) = (word(number), word(number.saturating_add(1)));
                for ((value, low), high) in row.iter_mut().zip(low).zip(high) {
                    *value = u64::from(*low) | u64::from(*high) << 32;
                }
            }
            Source::Predicate { number, is_negated } => {
                let bits = &self.predicates.get(usize::from(number)).unwrap_or(&Word::ZERO).0;
                for (value, bit) in row.iter_mut().zip(bits) {
                    *value = u64::from(bit & 1 ^ u32::from(is_negated));
                }
            }
            Source::Carry => {
                for (value, bit) in row.iter_mut().zip(&self.carry.0) {
                    *value = (*bit).into();
                }
            }
            Source::Constant(_) | Source::Special(_) | Source::Frame(_) => return None,
        }
        Some(row)
    }

    /// Writes a result in some lanes.
    pub fn write(&mut self, destination: Destination, lanes: u32, row: &Row) {
        match destination {
            Destination::Word { word, bits } => {
                let mask = u32::MAX >> (32 - bits.clamp(1, 32));
                let words = self.words.get_mut(usize::from(word));
                put(words, lanes, row, |value| value as u32 & mask);
            }
            Destination::Pair(word) => {
                let low = self.words.get_mut(usize::from(word));
                put(low, lanes, row, |value| value as u32);
                let high = self.words.get_mut(usize::from(word) + 1);
                put(high, lanes, row, |value| (value >> 32) as u32);
            }
            Destination::Predicate(number) => {
                let predicates = self.predicates.get_mut(usize::from(number));
                put(predicates, lanes, row, |value| value as u32 & 1);
            }
            Destination::Carry => put(Some(&mut self.carry), lanes, row, |value| value as u32 & 1),
            Destination::Sink => {}
        }
    }

    /// The registers of a function.
    pub fn of_function(&self, function: &FunctionCode) -> Registers {
        let range = |range: &std::ops::Range<u16>| usize::from(range.start)..usize::from(range.end);
        Registers {
            words: self.words[range(&function.words)].to_vec(),
            predicates: self.predicates[range(&function.predicates)].to_vec(),
            carry: self.carry,
        }
    }

    /// Restores some lanes of the registers of a function.
    pub fn restore(&mut self, function: &FunctionCode, saved: &Registers, lanes: u32) {
        let copy = |to: &mut [Word], from: &[Word]| {
            for (to, from) in to.iter_mut().zip(from) {
                for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
                    to.0[lane] = from.0[lane];
                }
            }
        };
        copy(&mut self.words[usize::from(function.words.start)..], &saved.words);
        copy(&mut self.predicates[usize::from(function.predicates.start)..], &saved.predicates);
    }
}

/// Writes some lanes of a word.
#[inline]
fn put(word: Option<&mut Word>, lanes: u32, row: &Row, value: impl Fn(u64) -> u32) {
    let Some(word) = word else { return };
    for (lane, (word, result)) in word.0.iter_mut().zip(row).enumerate() {
        let new = value(*result);
        // Without a branch, which a mask of lanes would mispredict.
        let keep = (lanes >> lane & 1).wrapping_sub(1);
        *word = *word & keep | new & !keep;
    }
}
