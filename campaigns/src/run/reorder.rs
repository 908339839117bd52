//! Results that come in any order, put in the order of the plan.

use std::collections::BTreeMap;

/// Holds back what comes too early.
#[derive(Debug)]
pub(crate) struct ReorderBuffer<T> {
    next: u64,
    early: BTreeMap<u64, T>,
}

impl<T> ReorderBuffer<T> {
    /// A buffer that gives out index 0 first.
    pub(crate) fn new() -> ReorderBuffer<T> {
        ReorderBuffer { next: 0, early: BTreeMap::new() }
    }

    /// Takes the result with `index`.
    pub(crate) fn push(&mut self, index: u64, result: T) {
        self.early.insert(index, result);
    }

    /// Gives out the next result in order, if it has come.
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
    fn results_come_out_in_order_and_at_once() {
        let mut buffer = ReorderBuffer::new();
        let mut given = Vec::new();
        let mut seen_after = Vec::new();
        for index in [2, 0, 1, 5, 4, 3] {
            buffer.push(index, index * 10);
            given.extend(std::iter::from_fn(|| buffer.pop()));
            seen_after.push(given.len());
        }
        assert_eq!(given, [0, 10, 20, 30, 40, 50]);
        assert_eq!(seen_after, [0, 1, 3, 3, 3, 6]);
    }

    #[test]
    fn a_gap_holds_back_everything_behind_it() {
        let mut buffer = ReorderBuffer::new();
        buffer.push(1, 'b');
        assert_eq!(buffer.pop(), None);
    }
}
