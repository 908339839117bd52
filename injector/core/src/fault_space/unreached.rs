//! Sites that an injection method cannot strike and that are therefore not drawn.

use crate::site::Place;
use flipwave_arch::Pc;
use std::collections::{BTreeMap, BTreeSet};

/// Words of instructions that are excluded from a fault space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreached(BTreeMap<String, BTreeMap<Pc, BTreeSet<String>>>);

impl Unreached {
    /// Excludes a word of an instruction in dispatches of a kernel.
    pub fn insert(&mut self, kernel: &str, pc: Pc, place: Place) {
        let kernel_words = self.0.entry(kernel.to_owned()).or_default();
        kernel_words.entry(pc).or_default().insert(kind(place).to_string());
    }

    /// Returns `true` if the word is excluded.
    pub(crate) fn contains(&self, kernel: &str, pc: Pc, place: Place) -> bool {
        let words = self.0.get(kernel).and_then(|words_by_pc| words_by_pc.get(&pc));
        words.is_some_and(|words| words.contains(&kind(place).to_string()))
    }

    /// Returns `true` if any word of the instruction is excluded.
    pub(crate) fn has_instruction(&self, kernel: &str, pc: Pc) -> bool {
        self.0.get(kernel).is_some_and(|words_by_pc| words_by_pc.contains_key(&pc))
    }
}

/// Maps all words of a memory to one representative.
fn kind(place: Place) -> Place {
    match place {
        Place::Lds(_) => Place::Lds(0),
        Place::Memory { .. } => Place::Memory { buffer: 0, offset: 0 },
        register_or_other => register_or_other,
    }
}
