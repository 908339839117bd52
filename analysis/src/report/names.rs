//! Interning of texts and instructions with bounded memory use.

use std::collections::HashMap;
use std::hash::Hash;

/// Most distinct values of a kind, more than a program has instructions or lines. Further values are counted
/// together.
const MAX_VALUES: usize = 50_000;
/// Most bytes of all interned texts.
const MAX_BYTES: usize = 32 << 20;

/// Interned values, numbered in order of insertion.
#[derive(Debug)]
pub(super) struct Interner<T> {
    numbers: HashMap<T, u32>,
    values: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Interner<T> {
        Interner { numbers: HashMap::new(), values: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// Interns a value and returns its number; `None` for a new value if there is no room.
    pub fn intern(&mut self, value: T) -> Option<u32> {
        if let Some(number) = self.numbers.get(&value) {
            return Some(*number);
        }
        let number = u32::try_from(self.values.len()).ok();
        let number = number.filter(|_| self.values.len() < MAX_VALUES)?;
        self.values.push(value.clone());
        self.numbers.insert(value, number);
        Some(number)
    }

    /// The value with a number.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)
    }
}

/// An interned text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Name {
    /// A text with its number in [`Names`].
    Interned(u32),
    /// Any text for which there was no room.
    Other,
}

/// Interned texts.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<Box<str>, u32>,
    texts: Vec<Box<str>>,
    bytes: usize,
}

impl Names {
    /// Interns a text.
    pub fn intern(&mut self, text: &str) -> Name {
        if let Some(number) = self.numbers.get(text) {
            return Name::Interned(*number);
        }
        let number = u32::try_from(self.texts.len()).ok();
        match number.filter(|_| self.texts.len() < MAX_VALUES) {
            Some(number) if self.reserve(text.len()) => {
                self.texts.push(text.into());
                self.numbers.insert(text.into(), number);
                Name::Interned(number)
            }
            _ => Name::Other,
        }
    }

    /// Reserves room for a text. Returns `false` if there is not enough.
    pub fn reserve(&mut self, bytes: usize) -> bool {
        let has_room = self.bytes.saturating_add(bytes) <= MAX_BYTES;
        if has_room {
            self.bytes += bytes;
        }
        has_room
    }

    /// The text of a name.
    pub fn text(&self, name: Name) -> &str {
        let text = match name {
            Name::Interned(number) => self.texts.get(number as usize),
            Name::Other => None,
        };
        text.map_or("(all others)", |text| text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_limits_are_other() {
        let mut names = Names::default();
        let first = names.intern("a");
        assert_eq!((names.intern("a"), names.text(first)), (first, "a"));
        for number in 0..MAX_VALUES + 10 {
            names.intern(&number.to_string());
        }
        assert_eq!(names.intern("new"), Name::Other);
        assert_eq!(names.intern("other"), Name::Other);
        assert_eq!(names.intern("a"), first, "interned texts stay");
        assert_eq!(names.text(Name::Other), "(all others)");

        let mut names = Names::default();
        let long = "x".repeat(MAX_BYTES);
        assert_eq!(names.intern(&long), Name::Interned(0));
        assert_eq!(names.intern("y"), Name::Other, "no room");
    }
}
