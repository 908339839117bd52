//! Reorder buffer: returns results that arrive in any order by ascending index.

use std::collections::BTreeMap;

/// Buffer of results that arrived before an earlier one.
#[derive(Debug)]
pub(crate) struct ReorderBuffer<T> {
    next: u64,
    early: BTreeMap<u64, T>,
}

impl<T> ReorderBuffer<T> {
    /// Creates a buffer whose first result has index 0.
    pub(crate) fn new() -> ReorderBuffer<T> {
        ReorderBuffer { next: 0, early: BTreeMap::new() }
    }

    /// Adds the result with `index`.
    pub(crate) fn push(&mut self, index: u64, result: T) {
        self.early.insert(index, result);
    }

    /// Removes the next result in order, if it has arrived.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let result = self.early.remove(&self.next)?;
        self.next += 1;
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_returned_in_order_as_soon_as_possible() {
        let mut buffer = ReorderBuffer::new();
        let mut popped = Vec::new();
        let mut counts = Vec::new();
        for index in [2, 0, 1, 5, 4, 3] {
            buffer.push(index, index * 10);
            popped.extend(std::iter::from_fn(|| buffer.pop()));
            counts.push(popped.len());
        }
        assert_eq!(popped, [0, 10, 20, 30, 40, 50]);
        assert_eq!(counts, [0, 1, 3, 3, 3, 6]);
    }

    #[test]
    fn results_after_a_gap_are_held_back() {
        let mut buffer = ReorderBuffer::new();
        buffer.push(1, 'b');
        assert_eq!(buffer.pop(), None);
    }
}
