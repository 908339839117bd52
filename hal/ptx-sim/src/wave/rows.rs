//! Rows of words whose memory is used again.
//!
//! Waves and calls are short-lived, and their memory is aligned for vectors: to take it from the allocator each
//! time is slower than to execute a short kernel.

use super::Word;
use std::cell::RefCell;
use std::mem;
use std::ops::{Deref, DerefMut};

/// Number of rows that a thread keeps, and of the parts that they are in.
const MOST_ROWS: usize = 1 << 16;
const MOST_PARTS: usize = 256;

static ZEROES: [Word; 64] = [Word::ZERO; 64];

/// Memory that is not in use.
#[derive(Default)]
struct Spare {
    parts: Vec<Vec<Word>>,
    rows: usize,
}

thread_local! {
    static SPARE: RefCell<Spare> = RefCell::default();
}

impl Spare {
    /// Memory for a number of rows, without content.
    fn take(&mut self, rows: usize) -> Option<Vec<Word>> {
        let fits = |part: &Vec<Word>| (rows..=4 * rows + 16).contains(&part.capacity());
        let place = self.parts.iter().rposition(fits)?;
        let part = self.parts.swap_remove(place);
        self.rows -= part.capacity();
        Some(part)
    }

    fn give(&mut self, mut part: Vec<Word>) {
        let has_room = self.parts.len() < MOST_PARTS && self.rows + part.capacity() <= MOST_ROWS;
        if has_room && part.capacity() > 0 {
            part.clear();
            self.rows += part.capacity();
            self.parts.push(part);
        }
    }
}

/// Rows of words.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct Rows(Vec<Word>);

/// Memory for a number of rows, without content.
fn memory(rows: usize) -> Vec<Word> {
    let spare = SPARE.try_with(|spare| spare.borrow_mut().take(rows));
    spare.ok().flatten().unwrap_or_else(|| Vec::with_capacity(rows))
}

impl Rows {
    /// Rows that are zero.
    pub fn new(rows: usize) -> Rows {
        let mut memory = memory(rows);
        // The host copies faster than it fills row by row.
        while memory.len() < rows {
            memory.extend_from_slice(&ZEROES[..ZEROES.len().min(rows - memory.len())]);
        }
        Rows(memory)
    }
}

impl Clone for Rows {
    fn clone(&self) -> Rows {
        let mut memory = memory(self.0.len());
        memory.extend_from_slice(&self.0);
        Rows(memory)
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        let part = mem::take(&mut self.0);
        // At the end of a thread, its spare memory may be gone.
        let _ = SPARE.try_with(|spare| spare.borrow_mut().give(part));
    }
}

impl Deref for Rows {
    type Target = [Word];

    fn deref(&self) -> &[Word] {
        &self.0
    }
}

impl DerefMut for Rows {
    fn deref_mut(&mut self) -> &mut [Word] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_memory_is_zeroed() {
        let mut rows = Rows::new(3);
        rows[1].0[7] = 5;
        let copy = rows.clone();
        assert_eq!(copy[1].0[7], 5);
        drop((rows, copy));
        assert!(Rows::new(3) == Rows::new(3) && Rows::new(2).iter().all(|row| *row == Word::ZERO));
    }
}
