//! Memory that GPUs have or share with the program, and which of them may access it. Each GPU has it at
//! the same addresses.

use crate::lost::missing;
use crate::shared::SharedMemory;
use std::collections::{BTreeMap, BTreeSet};
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
    /// Nothing if it is not the program's own; else of its bytes, those that the program has given back
    /// to the system.
    pub lost: Option<Vec<Range<u64>>>,
}

impl Block {
    /// What is left of it, as bytes.
    fn left(&self) -> Vec<Range<u64>> {
        let lost = self.lost.as_deref().unwrap_or_default();
        let starts = std::iter::once(0).chain(lost.iter().map(|lost| lost.end));
        let ends = lost.iter().map(|lost| lost.start).chain([self.bytes]);
        let all = starts.zip(ends).map(|(start, end)| start..end);
        all.filter(|left| !left.is_empty()).collect()
    }
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
    /// Where blocks are, or were, that are the program's own.
    programs: BTreeSet<u64>,
}

/// What of the program's own memory is not there as it was when GPUs were to get it.
#[derive(Debug, Default)]
pub struct Lost {
    /// At the program's own addresses.
    shared: Vec<Range<u64>>,
    /// Blocks, and what is lost of each.
    blocks: Vec<(u64, Vec<Range<u64>>)>,
}

impl Lost {
    pub fn is_nothing(&self) -> bool {
        self.shared.is_empty() && self.blocks.is_empty()
    }
}

impl Memory {
    /// Adds a block; whether its addresses are free.
    pub fn add(&mut self, address: u64, block: Block) -> bool {
        let end = address + block.bytes;
        let last = self.blocks.range(..end).next_back();
        let is_free = last.is_none_or(|(start, other)| start + other.bytes <= address);
        if is_free {
            self.shared.forget(address..end);
            if block.lost.is_some() {
                self.programs.insert(address);
            }
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
            let (start, host) = (*start, block.host);
            let extent = move |left: Range<u64>| {
                (start + left.start, Extent { end: start + left.end, host: host + left.start })
            };
            block.left().into_iter().map(extent)
        };
        let of_pages = |(start, end)| (start, Extent { end, host: start });
        blocks.flat_map(of_block).chain(self.shared.of(node).map(of_pages)).collect()
    }

    /// What the program has given back to the system, or has got again, since it was looked for last.
    pub fn lost(&self) -> Lost {
        let blocks = self.programs.iter().filter_map(|address| {
            let block = self.blocks.get(address)?;
            let offset = |page: Range<u64>| page.start - block.host..page.end - block.host;
            let lost = missing(block.host..block.host + block.bytes);
            let lost: Vec<Range<u64>> = lost.into_iter().map(offset).collect();
            block.lost.as_ref().is_some_and(|known| *known != lost).then_some((*address, lost))
        });
        Lost { shared: self.shared.ranges().flat_map(missing).collect(), blocks: blocks.collect() }
    }

    /// Keeps GPUs from what is lost. What was shared at the program's own addresses they do not get
    /// again unasked, as with the kernel's driver.
    pub fn lose(&mut self, lost: Lost) {
        lost.shared.into_iter().for_each(|pages| self.shared.forget(pages));
        for (address, lost) in lost.blocks {
            if let Some(block) = self.blocks.get_mut(&address) {
                block.lost = Some(lost);
            }
        }
        self.programs
            .retain(|address| self.blocks.get(address).is_some_and(|block| block.lost.is_some()));
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
        Block { bytes: pages * PAGE, host, node: 1, is_executable: false, nodes, lost: None }
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
    fn what_a_program_has_given_back_is_no_gpus() {
        let mut memory = Memory::default();
        // Nobody has the first pages of a process.
        let own = Block { lost: Some(Vec::new()), ..block(4, 0x1000, 2) };
        assert!(memory.add(0x10_0000, own) && memory.add(0x20_0000, block(1, 0x1000, 2)));
        memory.share(1, 0x8000..0xa000, true);
        assert_eq!(memory.mapped(1).len(), 3);
        let lost = memory.lost();
        assert!(!lost.is_nothing());
        memory.lose(lost);
        assert_eq!(memory.mapped(1).into_keys().collect::<Vec<_>>(), [0x20_0000]);
        assert!(memory.lost().is_nothing(), "it is not lost again");
        let lost = vec![0x1000..0x2000, 0x2000..0x3000];
        memory.lose(Lost { blocks: vec![(0x10_0000, lost)], ..Lost::default() });
        let extent = |start, end, host| (start, Extent { end, host });
        let left = [
            extent(0x10_0000, 0x10_1000, 0x1000),
            extent(0x10_3000, 0x10_4000, 0x4000),
            extent(0x20_0000, 0x20_1000, 0x1000),
        ];
        assert_eq!(memory.mapped(1), Extents::from(left));
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
