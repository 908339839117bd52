//! Dense tables with typed indices: a table with a row for each instruction, block or function can only be
//! indexed by an index of this kind.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut};

/// A type of index.
pub trait Key: Copy + Ord {
    /// The index with the given number, which starts at 0.
    fn new(number: usize) -> Self;

    /// The number of the index.
    fn number(self) -> usize;
}

/// Declares types of indices.
macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl Key for $name {
            fn new(number: usize) -> $name {
                $name(number as u32)
            }

            fn number(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}

keys! {
    /// Index of an instruction of a [`Disassembly`](super::Disassembly), in the order of addresses.
    InstIndex;
    /// Index of a basic block of a [`Disassembly`](super::Disassembly).
    BlockIndex;
    /// Index of a kernel or device function of a [`Disassembly`](super::Disassembly).
    FunctionIndex;
}

pub(crate) use keys;

impl InstIndex {
    /// The instruction at the next higher address. It may belong to another function, and does not exist if
    /// this is the last instruction.
    #[must_use]
    pub fn next(self) -> InstIndex {
        InstIndex(self.0 + 1)
    }

    /// The instruction at the next lower address; `None` for the first instruction.
    pub fn previous(self) -> Option<InstIndex> {
        self.0.checked_sub(1).map(InstIndex)
    }
}

/// A range of indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IndexRange<K> {
    /// First index.
    pub start: K,
    /// Index after the last one.
    pub end: K,
}

impl<K: Key> IndexRange<K> {
    /// The range from `start` to `end`, excluding `end`.
    pub fn new(start: K, end: K) -> IndexRange<K> {
        IndexRange { start, end }
    }

    /// Number of indices.
    pub fn len(self) -> usize {
        self.end.number().saturating_sub(self.start.number())
    }

    /// Returns `true` if the range is empty.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns `true` if the range contains an index.
    pub fn contains(self, index: K) -> bool {
        self.start <= index && index < self.end
    }

    /// The last index; `None` if the range is empty.
    pub fn last(self) -> Option<K> {
        self.iter().next_back()
    }

    /// All indices, ascending.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator + Clone {
        (self.start.number()..self.end.number()).map(K::new)
    }
}

/// A table with a row for each index of type `K`.
///
/// Indexing panics if the index is out of range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexVec<K, T> {
    rows: Vec<T>,
    key: PhantomData<fn(K)>,
}

impl<K: Key, T> IndexVec<K, T> {
    /// A table without rows.
    pub fn new() -> IndexVec<K, T> {
        Vec::new().into()
    }

    /// A table of `len` copies of a row.
    pub fn filled(row: T, len: usize) -> IndexVec<K, T>
    where
        T: Clone,
    {
        vec![row; len].into()
    }

    /// The index of the next row to be added.
    pub fn next_index(&self) -> K {
        K::new(self.rows.len())
    }

    /// Adds a row and returns its index.
    pub fn push(&mut self, row: T) -> K {
        let index = self.next_index();
        self.rows.push(row);
        index
    }

    /// Adds rows.
    pub fn extend(&mut self, rows: impl IntoIterator<Item = T>) {
        self.rows.extend(rows);
    }

    /// The row at an index; `None` if the index is out of range.
    pub fn get(&self, index: K) -> Option<&T> {
        self.rows.get(index.number())
    }

    /// All indices, ascending.
    pub fn indices(&self) -> IndexRange<K> {
        IndexRange::new(K::new(0), self.next_index())
    }

    /// All rows with their indices.
    pub fn enumerated(&self) -> impl DoubleEndedIterator<Item = (K, &T)> + ExactSizeIterator {
        self.indices().iter().zip(&self.rows)
    }
}

impl<K: Key, T> Default for IndexVec<K, T> {
    fn default() -> IndexVec<K, T> {
        IndexVec::new()
    }
}

impl<K, T> From<Vec<T>> for IndexVec<K, T> {
    fn from(rows: Vec<T>) -> IndexVec<K, T> {
        IndexVec { rows, key: PhantomData }
    }
}

impl<K, T> FromIterator<T> for IndexVec<K, T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> IndexVec<K, T> {
        Vec::from_iter(rows).into()
    }
}

impl<K, T> Deref for IndexVec<K, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.rows
    }
}

impl<K, T> DerefMut for IndexVec<K, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.rows
    }
}

impl<K: Key, T> Index<K> for IndexVec<K, T> {
    type Output = T;

    fn index(&self, index: K) -> &T {
        &self.rows[index.number()]
    }
}

impl<K: Key, T> IndexMut<K> for IndexVec<K, T> {
    fn index_mut(&mut self, index: K) -> &mut T {
        &mut self.rows[index.number()]
    }
}

impl<K: Key, T> Index<IndexRange<K>> for IndexVec<K, T> {
    type Output = [T];

    fn index(&self, range: IndexRange<K>) -> &[T] {
        &self.rows[range.start.number()..range.end.number()]
    }
}

impl<K: Key, T> IndexMut<IndexRange<K>> for IndexVec<K, T> {
    fn index_mut(&mut self, range: IndexRange<K>) -> &mut [T] {
        &mut self.rows[range.start.number()..range.end.number()]
    }
}

impl<'a, K, T> IntoIterator for &'a IndexVec<K, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.iter()
    }
}
