//! Memory that GPUs have or share with the program, and which of them may access it. Each GPU has it at
//! the same addresses.

use crate::shared::SharedMemory;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Memory that was allocated for GPUs, be it the program's own.
#[derive(Debug)]
pub struct Block {
    /// Whole pages.
    pub bytes: u64,
    /// Where this process has them, readable and writable as long as a GPU may access them.
    pub host: u64,
    /// The node that it is on.
    pub node: u32,
    /// Whether GPUs may execute what is in it.
    pub is_executable: bool,
    /// The GPUs that may access it, as bits by node.
    pub nodes: u64,
}

/// Pages that follow one another, from a first address on that is kept beside this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The address after the last.
    pub end: u64,
    /// Where this process has the first.
    pub host: u64,
}

/// What a GPU may access: extents by first address, which do not overlap.
pub type Extents = BTreeMap<u64, Extent>;

/// What a call changes for the GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// These addresses are mapped from now on.
    Map {
        /// Which.
        range: Range<u64>,
        /// Where this process has the first.
        host: u64,
    },
    /// What is mapped from this address on is not any more.
    Unmap(u64),
}

/// All memory that GPUs can have.
#[derive(Default)]
pub struct Memory {
    /// Blocks by address; they do not overlap.
    pub blocks: BTreeMap<u64, Block>,
    /// Memory of the program at its own addresses.
    pub shared: SharedMemory,
}

impl Memory {
    /// Adds a block; whether its addresses are free.
    pub fn add(&mut self, address: u64, block: Block) -> bool {
        let end = address + block.bytes;
        let last = self.blocks.range(..end).next_back();
        let is_free = last.is_none_or(|(start, other)| start + other.bytes <= address);
        if is_free {
            self.shared.forget(address..end);
            self.blocks.insert(address, block);
        }
        is_free
    }

    /// Says whether a GPU may access these pages of the program's from now on. What was allocated for
    /// GPUs is theirs anyway.
    pub fn share(&mut self, node: u32, pages: Range<u64>, may_access: bool) {
        let last = self.blocks.range(..pages.end).next_back();
        if last.is_none_or(|(start, block)| start + block.bytes <= pages.start) {
            self.shared.set(node, pages, may_access);
        }
    }

    /// The block that an address is in.
    pub fn block_around(&self, address: u64) -> Option<&Block> {
        let (start, block) = self.blocks.range(..=address).next_back()?;
        (address < start + block.bytes).then_some(block)
    }

    /// The pages that a GPU may access.
    pub fn mapped(&self, node: u32) -> Extents {
        let is_mapped = |block: &Block| block.nodes >> node & 1 != 0;
        let blocks = self.blocks.iter().filter(|(_, block)| is_mapped(block));
        let of_block = |(start, block): (&u64, &Block)| {
            (*start, Extent { end: start + block.bytes, host: block.host })
        };
        let of_pages = |(start, end)| (start, Extent { end, host: start });
        blocks.map(of_block).chain(self.shared.of(node).map(of_pages)).collect()
    }
}

/// How one set of extents becomes another.
pub fn changes(before: &Extents, after: &Extents) -> Vec<Change> {
    let gone = before.iter().filter(|(start, extent)| after.get(start) != Some(extent));
    let new = after.iter().filter(|(start, extent)| before.get(start) != Some(extent));
    let unmap = gone.map(|(start, _)| Change::Unmap(*start));
    let map = new.map(|(start, new)| Change::Map { range: *start..new.end, host: new.host });
    unmap.chain(map).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(pages: u64, host: u64, nodes: u64) -> Block {
        Block { bytes: pages * PAGE, host, node: 1, is_executable: false, nodes }
    }

    #[test]
    fn blocks_do_not_overlap() {
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
    fn a_gpu_has_what_was_mapped_for_it_and_nothing_else() {
        let mut memory = Memory::default();
        memory.add(0x10_0000, block(2, 0x70_0000, 2));
        memory.add(0x20_0000, block(1, 0x80_0000, 6));
        memory.share(2, 0x30_0000..0x30_1000, true);
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
    fn what_was_allocated_for_gpus_is_not_shared() {
        let mut memory = Memory::default();
        memory.share(1, 0x10_0000..0x10_4000, true);
        assert!(memory.add(0x10_1000, block(1, 0, 0)));
        memory.share(1, 0x10_1000..0x10_2000, true);
        let starts: Vec<u64> = memory.mapped(1).into_keys().collect();
        assert_eq!(starts, [0x10_0000, 0x10_2000]);
    }
}
