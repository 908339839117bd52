//! Registers that asynchronous matrix products use.

use flipwave_arch::RegisterId;
use std::collections::{HashSet, VecDeque};

/// Registers of pending products.
#[derive(Clone, Debug, Default)]
struct Group {
    /// Accumulators.
    written: HashSet<u16>,
    /// Fragments of the matrix A.
    read: HashSet<u16>,
}

/// Asynchronous products of a wave.
#[derive(Clone, Debug, Default)]
pub(super) struct Products {
    open: Group,
    committed: VecDeque<Group>,
    /// Words that were accessed since the last fence; `None` before the first fence.
    accessed: Option<HashSet<u16>>,
}

fn numbers(registers: &[RegisterId]) -> impl Iterator<Item = u16> {
    registers
        .iter()
        .filter(|found| found.class.rank == flipwave_ptx::WORDS.rank)
        .map(|register| register.number)
}

impl Products {
    /// Orders accesses to registers before later products.
    pub fn fence(&mut self) {
        self.accessed = Some(HashSet::new());
    }

    /// A word that a product uses, and that was accessed after the last fence; the first one without a fence.
    pub fn unfenced(&self, registers: &[RegisterId]) -> Option<u16> {
        let accessed = self.accessed.as_ref();
        numbers(registers).find(|word| accessed.is_none_or(|accessed| accessed.contains(word)))
    }

    /// Adds a product.
    pub fn add(&mut self, accumulators: &[RegisterId], left: &[RegisterId]) {
        self.open.written.extend(numbers(accumulators));
        self.open.read.extend(numbers(left));
    }

    /// Commits the products since the last commit.
    pub fn commit(&mut self) {
        self.committed.push_back(std::mem::take(&mut self.open));
    }

    /// Waits until at most `most` groups are pending.
    pub fn wait(&mut self, most: u64) {
        while self.committed.len() as u64 > most {
            self.committed.pop_front();
        }
    }

    /// Records accesses of another instruction. Returns a word that a pending product uses.
    pub fn access(&mut self, read: &[RegisterId], written: &[RegisterId]) -> Option<u16> {
        if let Some(accessed) = &mut self.accessed {
            accessed.extend(numbers(read).chain(numbers(written)));
        }
        let groups = || self.committed.iter().chain([&self.open]);
        let is_written = |word: &u16| groups().any(|group| group.written.contains(word));
        let is_read = |word: &u16| groups().any(|group| group.read.contains(word));
        numbers(read)
            .find(|word| is_written(word))
            .or_else(|| numbers(written).find(|word| is_written(word) || is_read(word)))
    }

    /// Returns `true` if the wave uses no products.
    pub fn is_unused(&self) -> bool {
        self.accessed.is_none() && self.open.written.is_empty() && self.committed.is_empty()
    }
}
