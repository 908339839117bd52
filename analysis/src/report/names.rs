//! Texts of a table, each kept once, and no more than a table of results can have.

use std::collections::HashMap;
use std::hash::Hash;

/// How many different things of a kind are counted one by one. A program has fewer instructions and
/// lines than that; whatever comes after them is counted together.
const MOST: usize = 50_000;
/// Bytes of all texts that are kept.
const MOST_BYTES: usize = 32 << 20;

/// Things by number, in the order in which they came.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    numbers: HashMap<T, u32>,
    things: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered { numbers: HashMap::new(), things: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    /// The number of a thing; nothing of a new one where there are too many.
    pub fn number(&mut self, thing: T) -> Option<u32> {
        if let Some(number) = self.numbers.get(&thing) {
            return Some(*number);
        }
        let number = u32::try_from(self.things.len()).ok().filter(|_| self.things.len() < MOST)?;
        self.things.push(thing.clone());
        self.numbers.insert(thing, number);
        Some(number)
    }

    /// The thing of a number.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.things.get(number as usize)
    }
}

/// A text of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Name {
    /// One that is kept.
    Kept(u32),
    /// Any of those for which there was no room.
    Other,
}

/// Texts by number.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<Box<str>, u32>,
    texts: Vec<Box<str>>,
    bytes: usize,
}

impl Names {
    /// The name with this text.
    pub fn name(&mut self, text: &str) -> Name {
        if let Some(number) = self.numbers.get(text) {
            return Name::Kept(*number);
        }
        let number = u32::try_from(self.texts.len()).ok().filter(|_| self.texts.len() < MOST);
        match number {
            Some(number) if self.take(text.len()) => {
                self.texts.push(text.into());
                self.numbers.insert(text.into(), number);
                Name::Kept(number)
            }
            _ => Name::Other,
        }
    }

    /// Whether there is room for a text of this length, which is then taken.
    pub fn take(&mut self, bytes: usize) -> bool {
        let has_room = self.bytes.saturating_add(bytes) <= MOST_BYTES;
        if has_room {
            self.bytes += bytes;
        }
        has_room
    }

    /// The text of a name.
    pub fn text(&self, name: Name) -> &str {
        let kept = match name {
            Name::Kept(number) => self.texts.get(number as usize),
            Name::Other => None,
        };
        kept.map_or("(all others)", |text| text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_once_and_those_beyond_the_limit_are_one() {
        let mut names = Names::default();
        let first = names.name("a");
        assert_eq!((names.name("a"), names.text(first)), (first, "a"));
        for number in 0..MOST + 10 {
            names.name(&number.to_string());
        }
        assert_eq!(names.name("new"), Name::Other);
        assert_eq!(names.name("other"), Name::Other);
        assert_eq!(names.name("a"), first, "what is kept stays");
        assert_eq!(names.text(Name::Other), "(all others)");

        let mut names = Names::default();
        let long = "x".repeat(MOST_BYTES);
        assert_eq!(names.name(&long), Name::Kept(0));
        assert_eq!(names.name("y"), Name::Other, "no room");
    }
}
