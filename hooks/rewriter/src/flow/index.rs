//! Typed indices of dense tables: what has a row for each instruction, block or function is
//! indexed by nothing else.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut};

/// A kind of index.
pub trait Key: Copy + Ord {
    /// The index of this number, from 0.
    fn new(number: usize) -> Self;

    /// Its number.
    fn number(self) -> usize;
}

/// Declares kinds of indices.
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
    /// Index of an instruction of a [`Disassembly`](super::Disassembly); ascending with the address.
    InstIndex;
    /// Index of a basic block of a [`Disassembly`](super::Disassembly).
    BlockIndex;
    /// Index of a function of a [`Disassembly`](super::Disassembly); kernels are functions.
    FunctionIndex;
}

pub(crate) use keys;

impl InstIndex {
    /// The instruction at the next higher address, which may belong to another function, or be
    /// none where this is the last.
    #[must_use]
    pub fn next(self) -> InstIndex {
        InstIndex(self.0 + 1)
    }

    /// The instruction at the next lower address; nothing where this is the first.
    pub fn previous(self) -> Option<InstIndex> {
        self.0.checked_sub(1).map(InstIndex)
    }
}

/// Consecutive indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IndexRange<K> {
    /// The first.
    pub start: K,
    /// The one after the last.
    pub end: K,
}

impl<K: Key> IndexRange<K> {
    /// From `start` to before `end`.
    pub fn new(start: K, end: K) -> IndexRange<K> {
        IndexRange { start, end }
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.end.number().saturating_sub(self.start.number())
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether an index is one of them.
    pub fn contains(self, index: K) -> bool {
        self.start <= index && index < self.end
    }

    /// The last; nothing where there is none.
    pub fn last(self) -> Option<K> {
        self.iter().next_back()
    }

    /// All of them, ascending.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator + Clone {
        (self.start.number()..self.end.number()).map(K::new)
    }
}

/// A table with a row for each index of a kind.
///
/// An index that it has no row for is a mistake of the program, and panics.
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

    /// A table of `len` rows that are the same.
    pub fn filled(row: T, len: usize) -> IndexVec<K, T>
    where
        T: Clone,
    {
        vec![row; len].into()
    }

    /// The index of the row that is added next.
    pub fn next_index(&self) -> K {
        K::new(self.rows.len())
    }

    /// Adds a row.
    pub fn push(&mut self, row: T) -> K {
        let index = self.next_index();
        self.rows.push(row);
        index
    }

    /// Adds rows.
    pub fn extend(&mut self, rows: impl IntoIterator<Item = T>) {
        self.rows.extend(rows);
    }

    /// The row of an index that came from elsewhere and may be none of this table's.
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
