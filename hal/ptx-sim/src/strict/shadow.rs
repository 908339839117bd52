//! Lanes in which registers hold values that something has written.

use crate::program::{Destination, Source};
use flipwave_arch::RegisterId;
use flipwave_ptx::{CARRY, PREDICATES, WORDS};
use std::collections::HashMap;

/// Defined lanes of the registers of a wave. Nothing is defined at its start.
#[derive(Clone, Debug, Default)]
pub(super) struct Shadow {
    words: HashMap<u16, u32>,
    predicates: HashMap<u16, u32>,
    carry: u32,
}

impl Shadow {
    /// Defined lanes of a word.
    pub fn word(&self, number: u16) -> u32 {
        self.words.get(&number).copied().unwrap_or(0)
    }

    /// Lanes in which a source is defined.
    pub fn source(&self, source: Source) -> u32 {
        match source {
            Source::Word { word, .. } => self.word(word),
            Source::Pair(word) => self.word(word) & self.word(word.saturating_add(1)),
            Source::Predicate { number, .. } => self.predicates.get(&number).copied().unwrap_or(0),
            Source::Carry => self.carry,
            Source::Constant(_) | Source::Special(_) | Source::Frame(_) => u32::MAX,
        }
    }

    /// Lanes in which a word, predicate or the carry is defined.
    pub fn register(&self, register: RegisterId) -> u32 {
        match register.class.rank {
            rank if rank == WORDS.rank => self.word(register.number),
            rank if rank == PREDICATES.rank => {
                self.predicates.get(&register.number).copied().unwrap_or(0)
            }
            rank if rank == CARRY.rank => self.carry,
            _ => u32::MAX,
        }
    }

    /// Sets whether a register is defined in some lanes.
    pub fn set(&mut self, register: RegisterId, lanes: u32, defined: u32) {
        let mask = match register.class.rank {
            rank if rank == WORDS.rank => self.words.entry(register.number).or_default(),
            rank if rank == PREDICATES.rank => self.predicates.entry(register.number).or_default(),
            _ => &mut self.carry,
        };
        *mask = *mask & !lanes | defined & lanes;
    }

    /// Sets whether a destination is defined in some lanes.
    pub fn write(&mut self, destination: Destination, lanes: u32, defined: u32) {
        let mut word = |number| {
            self.set(RegisterId { class: &WORDS, number }, lanes, defined);
        };
        match destination {
            Destination::Word { word: number, .. } => word(number),
            Destination::Pair(number) => {
                word(number);
                word(number.saturating_add(1));
            }
            Destination::Predicate(number) => {
                self.set(RegisterId { class: &PREDICATES, number }, lanes, defined);
            }
            Destination::Carry => self.carry = self.carry & !lanes | defined & lanes,
            Destination::Sink => {}
        }
    }
}
