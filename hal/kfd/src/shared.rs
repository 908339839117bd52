//! Memory that GPUs share with the program at the program's own addresses, as the driver's shared
//! virtual memory has it.

use std::collections::BTreeMap;
use std::ops::Range;

/// Which pages each GPU may access.
#[derive(Default)]
pub struct SharedMemory {
    /// By node: the first address of each run of pages, and its end.
    nodes: BTreeMap<u32, BTreeMap<u64, u64>>,
}

impl SharedMemory {
    /// Says whether a GPU may access these pages from now on.
    pub fn set(&mut self, node: u32, pages: Range<u64>, may_access: bool) {
        let runs = self.nodes.entry(node).or_default();
        let before = runs.range(..=pages.end).filter(|(_, end)| **end >= pages.start);
        let touched: Vec<(u64, u64)> = before.map(|(start, end)| (*start, *end)).collect();
        let (mut first, mut last) = (pages.start, pages.end);
        let mut left = Vec::new();
        for (start, end) in touched {
            runs.remove(&start);
            (first, last) = (first.min(start), last.max(end));
            left.extend([start..pages.start, pages.end..end]);
        }
        if may_access {
            runs.insert(first, last);
        } else {
            let left = left.into_iter().filter(|run| run.start < run.end);
            runs.extend(left.map(|run| (run.start, run.end)));
        }
    }

    /// Says that no GPU may access these pages from now on.
    pub fn forget(&mut self, pages: Range<u64>) {
        let nodes: Vec<u32> = self.nodes.keys().copied().collect();
        for node in nodes {
            self.set(node, pages.clone(), false);
        }
    }

    /// Whether a GPU may access all of these pages.
    pub fn is_set(&self, node: u32, pages: Range<u64>) -> bool {
        let run = self.nodes.get(&node).and_then(|runs| runs.range(..=pages.start).next_back());
        run.is_some_and(|(_, end)| *end >= pages.end)
    }

    /// Whether an address is in a page that a GPU may access.
    pub fn contains(&self, address: u64) -> bool {
        self.nodes.keys().any(|node| self.is_set(*node, address..address + 1))
    }

    /// All pages that any GPU may access, for each.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.nodes.values().flatten().map(|(start, end)| *start..*end)
    }

    /// The pages of a GPU, as ranges that do not overlap.
    pub fn of(&self, node: u32) -> impl Iterator<Item = (u64, u64)> {
        self.nodes.get(&node).into_iter().flatten().map(|(start, end)| (*start, *end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(shared: &SharedMemory) -> Vec<(u64, u64)> {
        shared.of(1).collect()
    }

    #[test]
    fn pages_are_joined_and_taken_out_again() {
        let mut shared = SharedMemory::default();
        shared.set(1, 0x1000..0x3000, true);
        shared.set(1, 0x5000..0x6000, true);
        assert_eq!(ranges(&shared), [(0x1000, 0x3000), (0x5000, 0x6000)]);
        shared.set(1, 0x3000..0x5000, true);
        assert_eq!(ranges(&shared), [(0x1000, 0x6000)]);
        assert!(shared.is_set(1, 0x2000..0x6000) && !shared.is_set(1, 0x2000..0x7000));
        assert!(shared.contains(0x5fff) && !shared.contains(0x6000));
        shared.set(1, 0x2000..0x3000, false);
        assert_eq!(ranges(&shared), [(0x1000, 0x2000), (0x3000, 0x6000)]);
        shared.set(1, 0..0x1_0000, false);
        assert_eq!(ranges(&shared), []);
        shared.set(2, 0x1000..0x2000, true);
        assert_eq!(ranges(&shared), []);
    }
}
