//! Places that a way of injecting cannot strike, and that are not drawn for it.

use crate::site::Place;
use flipwave_isa::Pc;
use std::collections::{BTreeMap, BTreeSet};

/// Words of instructions that are left out of a population.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreached(BTreeMap<String, BTreeMap<Pc, BTreeSet<String>>>);

impl Unreached {
    /// Leaves out a word of an instruction, in dispatches of a kernel.
    pub(crate) fn insert(&mut self, kernel: &str, pc: Pc, place: Place) {
        let of_kernel = self.0.entry(kernel.to_owned()).or_default();
        of_kernel.entry(pc).or_default().insert(kind(place).to_string());
    }

    /// Whether a word is left out.
    pub(crate) fn contains(&self, kernel: &str, pc: Pc, place: Place) -> bool {
        let words = self.0.get(kernel).and_then(|own| own.get(&pc));
        words.is_some_and(|own| own.contains(&kind(place).to_string()))
    }

    /// Whether any word of an instruction is left out.
    pub(crate) fn has_instruction(&self, kernel: &str, pc: Pc) -> bool {
        self.0.get(kernel).is_some_and(|own| own.contains_key(&pc))
    }
}

/// All words of a memory are alike.
fn kind(place: Place) -> Place {
    match place {
        Place::Lds(_) => Place::Lds(0),
        Place::Memory { .. } => Place::Memory { buffer: 0, offset: 0 },
        other => other,
    }
}
