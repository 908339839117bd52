//! Shared virtual memory: memory that GPUs share with the program at the program's own addresses.

use std::collections::BTreeMap;
use std::ops::Range;

/// The pages that each GPU may access.
#[derive(Default)]
pub struct SharedMemory {
    /// First address and end of each range of pages, by node. Ranges do not overlap or
    /// touch.
    nodes: BTreeMap<u32, BTreeMap<u64, u64>>,
}

impl SharedMemory {
    /// Lets a GPU access these pages.
    pub fn add(&mut self, node: u32, pages: Range<u64>) {
        let removed = self.take_adjacent(node, &pages);
        let start = removed.iter().map(|range| range.start).fold(pages.start, u64::min);
        let end = removed.iter().map(|range| range.end).fold(pages.end, u64::max);
        self.nodes.entry(node).or_default().insert(start, end);
    }

    /// Takes these pages away from a GPU.
    pub fn remove(&mut self, node: u32, pages: Range<u64>) {
        let removed = self.take_adjacent(node, &pages);
        let kept = removed
            .into_iter()
            .flat_map(|range| [range.start..pages.start, pages.end..range.end])
            .filter(|range| range.start < range.end);
        let ranges = self.nodes.entry(node).or_default();
        ranges.extend(kept.map(|range| (range.start, range.end)));
    }

    /// Removes and returns all ranges of a GPU that overlap or touch these pages.
    fn take_adjacent(&mut self, node: u32, pages: &Range<u64>) -> Vec<Range<u64>> {
        let ranges = self.nodes.entry(node).or_default();
        let adjacent = ranges.range(..=pages.end).filter(|(_, end)| **end >= pages.start);
        let adjacent: Vec<Range<u64>> = adjacent.map(|(start, end)| *start..*end).collect();
        for range in &adjacent {
            ranges.remove(&range.start);
        }
        adjacent
    }

    /// Takes these pages away from all GPUs.
    pub fn remove_all(&mut self, pages: Range<u64>) {
        let nodes: Vec<u32> = self.nodes.keys().copied().collect();
        for node in nodes {
            self.remove(node, pages.clone());
        }
    }

    /// Returns `true` if a GPU may access all of these pages.
    pub fn contains(&self, node: u32, pages: Range<u64>) -> bool {
        let range = self.nodes.get(&node).and_then(|all| all.range(..=pages.start).next_back());
        range.is_some_and(|(_, end)| *end >= pages.end)
    }

    /// Returns `true` if any GPU may access the page of an address.
    pub fn is_shared(&self, address: u64) -> bool {
        self.nodes.keys().any(|node| self.contains(*node, address..address + 1))
    }

    /// The ranges of pages of all GPUs. Ranges of different GPUs may overlap.
    pub fn all_ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.nodes.values().flatten().map(|(start, end)| *start..*end)
    }

    /// The ranges of pages of a GPU, in ascending order.
    pub fn ranges(&self, node: u32) -> impl Iterator<Item = Range<u64>> {
        self.nodes.get(&node).into_iter().flatten().map(|(start, end)| *start..*end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(shared: &SharedMemory) -> Vec<(u64, u64)> {
        shared.ranges(1).map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn ranges_are_merged_and_split() {
        let mut shared = SharedMemory::default();
        shared.add(1, 0x1000..0x3000);
        shared.add(1, 0x5000..0x6000);
        assert_eq!(ranges(&shared), [(0x1000, 0x3000), (0x5000, 0x6000)]);
        shared.add(1, 0x3000..0x5000);
        assert_eq!(ranges(&shared), [(0x1000, 0x6000)]);
        assert!(shared.contains(1, 0x2000..0x6000) && !shared.contains(1, 0x2000..0x7000));
        assert!(shared.is_shared(0x5fff) && !shared.is_shared(0x6000));
        shared.remove(1, 0x2000..0x3000);
        assert_eq!(ranges(&shared), [(0x1000, 0x2000), (0x3000, 0x6000)]);
        shared.remove(1, 0..0x1_0000);
        assert_eq!(ranges(&shared), []);
        shared.add(2, 0x1000..0x2000);
        assert_eq!(ranges(&shared), []);
    }
}
