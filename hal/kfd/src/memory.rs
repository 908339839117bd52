//! Memory of the GPUs and memory that they share with the program, and the GPUs that may access it.
//! All GPUs see a block at the same address.

use crate::shared::SharedMemory;
use crate::unmapped::unmapped;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Size of a page in bytes.
pub const PAGE: u64 = 4096;

/// Memory that was allocated for GPUs: their own, or registered memory of the program.
#[derive(Debug)]
pub struct Block {
    /// Size in bytes, a multiple of [`PAGE`].
    pub bytes: u64,
    /// Address in this process, where it is readable and writable as long as a GPU may access it.
    pub host: u64,
    /// Node that the memory is on.
    pub node: u32,
    /// `true` if GPUs may execute code in it.
    pub is_executable: bool,
    /// Bit mask of the nodes of the GPUs that may access it.
    pub nodes: u64,
    /// For memory of the program (userptr): the offsets that the program has unmapped. `None` for
    /// other memory.
    pub unmapped: Option<Vec<Range<u64>>>,
}

impl Block {
    /// The offsets that are still mapped.
    fn mapped(&self) -> Vec<Range<u64>> {
        let unmapped = self.unmapped.as_deref().unwrap_or_default();
        let starts = std::iter::once(0).chain(unmapped.iter().map(|range| range.end));
        let ends = unmapped.iter().map(|range| range.start).chain([self.bytes]);
        let all = starts.zip(ends).map(|(start, end)| start..end);
        all.filter(|range| !range.is_empty()).collect()
    }
}

/// Contiguous pages. The address of the first is stored elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Address after the last byte.
    pub end: u64,
    /// Address of the first byte in this process.
    pub host: u64,
}

/// Memory that a GPU may access: extents by first address, which do not overlap.
pub type Extents = BTreeMap<u64, Extent>;

/// A change of the memory that a GPU may access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The GPU may now access these addresses.
    Map {
        range: Range<u64>,
        /// Address of the first byte in this process.
        host: u64,
    },
    /// The GPU may no longer access what was mapped from this address.
    Unmap(u64),
}

/// All memory that GPUs can access.
#[derive(Default)]
pub struct Memory {
    /// Blocks by address; they do not overlap.
    pub blocks: BTreeMap<u64, Block>,
    /// Memory of the program at its own addresses.
    pub shared: SharedMemory,
    /// Addresses that may have a block of the program's memory.
    userptr_blocks: BTreeSet<u64>,
}

/// Memory of the program whose mapping has changed since GPUs got access to it.
#[derive(Debug, Default)]
pub struct UnmappedMemory {
    /// Unmapped pages of the shared memory.
    shared: Vec<Range<u64>>,
    /// Addresses of blocks whose unmapped offsets have changed, and these offsets.
    blocks: Vec<(u64, Vec<Range<u64>>)>,
}

impl UnmappedMemory {
    pub fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.blocks.is_empty()
    }
}

impl Memory {
    /// Adds a block. Returns `false` if another block overlaps it.
    pub fn add(&mut self, address: u64, block: Block) -> bool {
        let end = address + block.bytes;
        let last = self.blocks.range(..end).next_back();
        let is_free = last.is_none_or(|(start, last)| start + last.bytes <= address);
        if is_free {
            self.shared.remove_all(address..end);
            if block.unmapped.is_some() {
                self.userptr_blocks.insert(address);
            }
            self.blocks.insert(address, block);
        }
        is_free
    }

    /// Lets a GPU access pages of the program. Pages in blocks are left alone.
    pub fn share(&mut self, node: u32, pages: Range<u64>) {
        if !self.overlaps_block(&pages) {
            self.shared.add(node, pages);
        }
    }

    /// Takes pages of the program away from a GPU. Pages in blocks are left alone.
    pub fn unshare(&mut self, node: u32, pages: Range<u64>) {
        if !self.overlaps_block(&pages) {
            self.shared.remove(node, pages);
        }
    }

    fn overlaps_block(&self, pages: &Range<u64>) -> bool {
        let last = self.blocks.range(..pages.end).next_back();
        last.is_some_and(|(start, block)| start + block.bytes > pages.start)
    }

    /// The block that contains an address.
    pub fn block_around(&self, address: u64) -> Option<&Block> {
        let (start, block) = self.blocks.range(..=address).next_back()?;
        (address < start + block.bytes).then_some(block)
    }

    /// The pages that a GPU may access.
    pub fn mapped(&self, node: u32) -> Extents {
        let is_mapped = |block: &Block| block.nodes >> node & 1 != 0;
        let blocks = self.blocks.iter().filter(|(_, block)| is_mapped(block));
        let block_extents = |(start, block): (&u64, &Block)| {
            let (start, host) = (*start, block.host);
            let extent = move |offsets: Range<u64>| {
                let (end, host) = (start + offsets.end, host + offsets.start);
                (start + offsets.start, Extent { end, host })
            };
            block.mapped().into_iter().map(extent)
        };
        let shared_extent =
            |pages: Range<u64>| (pages.start, Extent { end: pages.end, host: pages.start });
        let shared = self.shared.ranges(node).map(shared_extent);
        blocks.flat_map(block_extents).chain(shared).collect()
    }

    /// Finds memory that the program has unmapped, or mapped again, since the last call.
    pub fn find_unmapped(&self) -> UnmappedMemory {
        let blocks = self.userptr_blocks.iter().filter_map(|address| {
            let block = self.blocks.get(address)?;
            let offset = |page: Range<u64>| page.start - block.host..page.end - block.host;
            let found = unmapped(block.host..block.host + block.bytes);
            let found: Vec<Range<u64>> = found.into_iter().map(offset).collect();
            let is_new = block.unmapped.as_ref().is_some_and(|known| *known != found);
            is_new.then_some((*address, found))
        });
        let shared = self.shared.all_ranges().flat_map(unmapped).collect();
        UnmappedMemory { shared, blocks: blocks.collect() }
    }

    /// Takes unmapped memory away from all GPUs. If the program maps shared memory again, GPUs do
    /// not get access to it again unasked, as with the kernel's driver.
    pub fn remove_unmapped(&mut self, unmapped: UnmappedMemory) {
        unmapped.shared.into_iter().for_each(|pages| self.shared.remove_all(pages));
        for (address, offsets) in unmapped.blocks {
            if let Some(block) = self.blocks.get_mut(&address) {
                block.unmapped = Some(offsets);
            }
        }
        let is_userptr = |block: &Block| block.unmapped.is_some();
        self.userptr_blocks.retain(|address| self.blocks.get(address).is_some_and(is_userptr));
    }
}

/// The changes that turn one set of extents into another.
pub fn changes(before: &Extents, after: &Extents) -> Vec<Change> {
    let removed = before.iter().filter(|(start, extent)| after.get(start) != Some(extent));
    let added = after.iter().filter(|(start, extent)| before.get(start) != Some(extent));
    let unmap = removed.map(|(start, _)| Change::Unmap(*start));
    let map =
        added.map(|(start, extent)| Change::Map { range: *start..extent.end, host: extent.host });
    unmap.chain(map).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(pages: u64, host: u64, nodes: u64) -> Block {
        Block { bytes: pages * PAGE, host, node: 1, is_executable: false, nodes, unmapped: None }
    }

    #[test]
    fn overlapping_blocks_are_refused() {
        let mut memory = Memory::default();
        assert!(memory.add(0x10_0000, block(4, 0, 0)) && memory.add(0x10_4000, block(1, 0, 0)));
        for (address, pages) in [(0x10_0000, 1), (0xf_f000, 2), (0x10_3000, 9), (0xf_f000, 99)] {
            assert!(!memory.add(address, block(pages, 0, 0)), "{address:x}");
        }
        let around = |address| memory.block_around(address).map(|block| block.bytes);
        assert_eq!([around(0x10_3fff), around(0x10_4000)], [Some(4 * PAGE), Some(PAGE)]);
        assert_eq!([around(0xf_ffff), around(0x10_5000)], [None, None]);
    }

    #[test]
    fn a_gpu_may_access_exactly_the_memory_mapped_for_it() {
        let mut memory = Memory::default();
        memory.add(0x10_0000, block(2, 0x70_0000, 2));
        memory.add(0x20_0000, block(1, 0x80_0000, 6));
        memory.share(2, 0x30_0000..0x30_1000);
        let extent = |start: u64, pages, host| (start, Extent { end: start + pages * PAGE, host });
        let [first, second] = [extent(0x10_0000, 2, 0x70_0000), extent(0x20_0000, 1, 0x80_0000)];
        let shared = extent(0x30_0000, 1, 0x30_0000);
        let both = memory.mapped(1);
        assert_eq!(both, Extents::from([first, second]));
        assert_eq!(memory.mapped(2), Extents::from([second, shared]));
        memory.blocks.insert(0x10_0000, block(2, 0x90_0000, 2));
        let moved = Change::Map { range: 0x10_0000..0x10_2000, host: 0x90_0000 };
        assert_eq!(changes(&both, &memory.mapped(1)), [Change::Unmap(0x10_0000), moved]);
    }

    #[test]
    fn memory_that_the_program_has_unmapped_is_taken_away() {
        let mut memory = Memory::default();
        // No process has the first pages.
        let userptr = Block { unmapped: Some(Vec::new()), ..block(4, 0x1000, 2) };
        assert!(memory.add(0x10_0000, userptr) && memory.add(0x20_0000, block(1, 0x1000, 2)));
        memory.share(1, 0x8000..0xa000);
        assert_eq!(memory.mapped(1).len(), 3);
        let unmapped = memory.find_unmapped();
        assert!(!unmapped.is_empty());
        memory.remove_unmapped(unmapped);
        assert_eq!(memory.mapped(1).into_keys().collect::<Vec<_>>(), [0x20_0000]);
        assert!(memory.find_unmapped().is_empty(), "found twice");
        let offsets = vec![0x1000..0x2000, 0x2000..0x3000];
        let blocks = vec![(0x10_0000, offsets)];
        memory.remove_unmapped(UnmappedMemory { blocks, ..UnmappedMemory::default() });
        let extent = |start, end, host| (start, Extent { end, host });
        let mapped = [
            extent(0x10_0000, 0x10_1000, 0x1000),
            extent(0x10_3000, 0x10_4000, 0x4000),
            extent(0x20_0000, 0x20_1000, 0x1000),
        ];
        assert_eq!(memory.mapped(1), Extents::from(mapped));
    }

    #[test]
    fn pages_in_blocks_are_not_shared() {
        let mut memory = Memory::default();
        memory.share(1, 0x10_0000..0x10_4000);
        assert!(memory.add(0x10_1000, block(1, 0, 0)));
        memory.share(1, 0x10_1000..0x10_2000);
        let starts: Vec<u64> = memory.mapped(1).into_keys().collect();
        assert_eq!(starts, [0x10_0000, 0x10_2000]);
    }
}
