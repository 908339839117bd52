//! Registers of a wave: words and predicates of 32 lanes.

use super::Rows;
use crate::compute::{LANES, Row};
use crate::program::{Destination, Source};
use flipwave_arch::{Lane, RegisterId};
use flipwave_ptx::{CARRY, FunctionCode, PREDICATES, WORDS};
use std::ops::Range;

/// A word of each lane, aligned for vectors of the host.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Word(pub [u32; LANES]);

impl Word {
    /// Zero in all lanes.
    pub const ZERO: Word = Word([0; LANES]);

    /// Writes some lanes.
    #[inline]
    pub fn put(&mut self, lanes: u32, value: impl Fn(usize) -> u32) {
        if lanes == u32::MAX {
            self.0 = std::array::from_fn(value);
            return;
        }
        for (lane, word) in self.0.iter_mut().enumerate() {
            // Without a branch, which a mask of lanes would mispredict.
            let keep = (lanes >> lane & 1).wrapping_sub(1);
            *word = *word & keep | value(lane) & !keep;
        }
    }
}

/// Registers with consecutive numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RegisterRange {
    /// Numbers of words.
    pub words: Range<u16>,
    /// Numbers of predicates.
    pub predicates: Range<u16>,
}

impl RegisterRange {
    /// The least range that contains the registers of some functions.
    pub fn of<'a>(functions: impl Iterator<Item = &'a FunctionCode>) -> RegisterRange {
        functions.fold(RegisterRange::default(), |range, function| RegisterRange {
            words: joined(&range.words, &function.words),
            predicates: joined(&range.predicates, &function.predicates),
        })
    }
}

/// The least range that contains two others.
fn joined(a: &Range<u16>, b: &Range<u16>) -> Range<u16> {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b.clone(),
        (_, true) => a.clone(),
        _ => a.start.min(b.start)..a.end.max(b.end),
    }
}

fn contains(outer: &Range<u16>, inner: &Range<u16>) -> bool {
    inner.is_empty() || outer.start <= inner.start && inner.end <= outer.end
}

/// The registers of a wave: those of the functions that it may execute. Predicates are 0 or 1.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Registers {
    /// Numbers of the first word and of the first predicate.
    first: [u16; 2],
    words: Rows,
    predicates: Rows,
    carry: [u32; LANES],
}

impl Registers {
    /// Registers that are zero.
    pub fn new(range: &RegisterRange) -> Registers {
        let RegisterRange { words, predicates } = range;
        Registers {
            first: [words.start, predicates.start],
            words: Rows::new(words.len()),
            predicates: Rows::new(predicates.len()),
            carry: [0; LANES],
        }
    }

    /// The numbers of the registers.
    pub fn range(&self) -> RegisterRange {
        let range = |first: u16, rows: &Rows| first..first + rows.len() as u16;
        RegisterRange {
            words: range(self.first[0], &self.words),
            predicates: range(self.first[1], &self.predicates),
        }
    }

    /// Adds registers, which are zero.
    pub fn extend(&mut self, range: &RegisterRange) {
        let present = self.range();
        if contains(&present.words, &range.words)
            && contains(&present.predicates, &range.predicates)
        {
            return;
        }
        let all = RegisterRange {
            words: joined(&present.words, &range.words),
            predicates: joined(&present.predicates, &range.predicates),
        };
        let mut extended = Registers { carry: self.carry, ..Registers::new(&all) };
        let copy = |to: &mut [Word], at: u16, from: &[Word]| {
            to[usize::from(at)..][..from.len()].copy_from_slice(from);
        };
        let offset = |present: &Range<u16>, all: &Range<u16>| {
            if present.is_empty() { 0 } else { present.start - all.start }
        };
        copy(&mut extended.words, offset(&present.words, &all.words), &self.words);
        let at = offset(&present.predicates, &all.predicates);
        copy(&mut extended.predicates, at, &self.predicates);
        *self = extended;
    }

    /// Place of a word in its rows.
    #[inline]
    fn word_place(&self, number: u16) -> usize {
        usize::from(number).wrapping_sub(self.first[0].into())
    }

    /// Place of a predicate in its rows.
    #[inline]
    fn predicate_place(&self, number: u16) -> usize {
        usize::from(number).wrapping_sub(self.first[1].into())
    }

    /// The lanes of a register; `None` if the wave does not have it.
    pub fn lanes(&self, register: RegisterId) -> Option<&[u32; LANES]> {
        let number = register.number;
        let word = match register.class.rank {
            rank if rank == WORDS.rank => self.words.get(self.word_place(number)),
            rank if rank == PREDICATES.rank => self.predicates.get(self.predicate_place(number)),
            rank if rank == CARRY.rank => return Some(&self.carry),
            _ => None,
        };
        word.map(|word| &word.0)
    }

    /// Writes one lane of a register; returns `false` if the wave does not have it.
    pub fn set(&mut self, register: RegisterId, lane: Lane, value: u32) -> bool {
        let [word, predicate] =
            [self.word_place(register.number), self.predicate_place(register.number)];
        let (row, value) = match register.class.rank {
            rank if rank == WORDS.rank => (self.words.get_mut(word), value),
            rank if rank == PREDICATES.rank => (self.predicates.get_mut(predicate), value & 1),
            rank if rank == CARRY.rank => {
                let lane = self.carry.get_mut(usize::from(lane.0));
                return lane.map(|bit| *bit = value & 1).is_some();
            }
            _ => (None, value),
        };
        row.and_then(|row| row.0.get_mut(usize::from(lane.0))).map(|word| *word = value).is_some()
    }

    /// Host addresses of the word and the predicate with number 0, if the wave had them.
    pub fn pointers(&mut self) -> [*mut Word; 2] {
        let [words, predicates] = self.first.map(usize::from);
        [
            self.words.as_mut_ptr().wrapping_sub(words),
            self.predicates.as_mut_ptr().wrapping_sub(predicates),
        ]
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        (self.words.len() + self.predicates.len() + 1) * size_of::<Word>()
    }

    /// Lanes whose predicate is true.
    pub fn predicate(&self, number: u16) -> u32 {
        let row = self.predicates.get(self.predicate_place(number)).unwrap_or(&Word::ZERO);
        row.0.iter().rev().fold(0, |mask, bit| mask << 1 | bit & 1)
    }

    /// Reads a source that is a register; `None` for other sources.
    #[inline]
    pub fn read(&self, source: Source) -> Option<Row> {
        let word = |number: u16| &self.words.get(self.word_place(number)).unwrap_or(&Word::ZERO).0;
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
                let bits =
                    &self.predicates.get(self.predicate_place(number)).unwrap_or(&Word::ZERO).0;
                for (value, bit) in row.iter_mut().zip(bits) {
                    *value = u64::from(bit & 1 ^ u32::from(is_negated));
                }
            }
            Source::Carry => {
                for (value, bit) in row.iter_mut().zip(&self.carry) {
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
                let place = self.word_place(word);
                put(self.words.get_mut(place), lanes, row, |value| value as u32 & mask);
            }
            Destination::Pair(word) => {
                let place = self.word_place(word);
                put(self.words.get_mut(place), lanes, row, |value| value as u32);
                put(self.words.get_mut(place.wrapping_add(1)), lanes, row, |value| {
                    (value >> 32) as u32
                });
            }
            Destination::Predicate(number) => {
                let place = self.predicate_place(number);
                put(self.predicates.get_mut(place), lanes, row, |value| value as u32 & 1);
            }
            Destination::Carry => {
                let mut carry = Word(self.carry);
                put(Some(&mut carry), lanes, row, |value| value as u32 & 1);
                self.carry = carry.0;
            }
            Destination::Sink => {}
        }
    }

    /// The registers of a function, which the wave has.
    pub fn of_function(&self, function: &FunctionCode) -> Registers {
        let part = |rows: &[Word], place: usize, count: usize| {
            let found = rows.get(place..).and_then(|rows| rows.get(..count)).unwrap_or_default();
            let mut part = Rows::new(found.len());
            part.copy_from_slice(found);
            part
        };
        let (words, predicates) = (&function.words, &function.predicates);
        Registers {
            first: [words.start, predicates.start],
            words: part(&self.words, self.word_place(words.start), words.len()),
            predicates: part(
                &self.predicates,
                self.predicate_place(predicates.start),
                predicates.len(),
            ),
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
        let [word, predicate] = [
            self.word_place(function.words.start),
            self.predicate_place(function.predicates.start),
        ];
        copy(self.words.get_mut(word..).unwrap_or_default(), &saved.words);
        copy(self.predicates.get_mut(predicate..).unwrap_or_default(), &saved.predicates);
    }
}

/// Writes some lanes of a word.
#[inline]
fn put(word: Option<&mut Word>, lanes: u32, row: &Row, value: impl Fn(u64) -> u32) {
    if let Some(word) = word {
        word.put(lanes, |lane| value(row[lane]));
    }
}
