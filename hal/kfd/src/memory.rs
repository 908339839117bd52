//! Memory that the runtime allocates or registers, and which GPU may access it. GPU and host have
//! allocations at the same address; registered memory of the program has another address on the GPU,
//! as on a discrete one: HIP expects that.

use crate::abi::Status;
use crate::shared::SharedMemory;
use std::collections::BTreeMap;
use std::ops::Range;

/// Where the GPU's memory lies. Places do not depend on what else is in the process, so that they
/// are the same in each run.
const ARENA: Range<u64> = 0x1000_0000_0000..0x1800_0000_0000;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Left unmapped after each allocation, so that running over its end is a fault.
const GUARD: u64 = 64 << 10;
/// Allocations of this size or more begin at a multiple of it.
const LARGE_PAGE: u64 = 2 << 20;

/// What an address on the GPU has more than that of the same registered memory in the program, whose
/// addresses have less bits.
const ALIAS: u64 = 1 << 47;

/// The address at which the program has what the GPU has at an address.
pub fn host_address(gpu: u64) -> u64 {
    gpu & !ALIAS
}

/// An allocation, or memory of the program that was registered.
#[derive(Debug)]
pub struct Block {
    /// Bytes asked for, whole pages.
    pub bytes: u64,
    /// Where this process has them, readable and writable as long as a GPU may access them.
    pub host: u64,
    /// The node that it was allocated on.
    pub node: u32,
    /// `HsaMemFlags`.
    pub flags: u32,
    /// Whether GPUs may execute what is in it.
    pub is_executable: bool,
    /// What the runtime keeps with it.
    pub user_data: u64,
    /// Registered: how often.
    pub registered: u32,
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

/// All blocks of the process.
#[derive(Default)]
pub struct Memory {
    /// Allocations, by address; they are in the arena.
    pub allocations: BTreeMap<u64, Block>,
    /// Registered memory by address; such blocks may overlap.
    pub registered: BTreeMap<u64, Block>,
    /// Memory that GPUs share with the program at the program's own addresses.
    pub shared: SharedMemory,
    is_reserved: bool,
}

impl Block {
    /// One that no GPU has mapped yet.
    pub fn new(bytes: u64, host: u64, node: u32) -> Block {
        let (flags, is_executable) = (0, false);
        Block { bytes, host, node, flags, is_executable, user_data: 0, registered: 0, nodes: 0 }
    }

    /// With the flags of the thunk's interface, `HsaMemFlags`.
    fn with_flags(self, flags: u32) -> Block {
        const EXECUTABLE: u32 = 1 << 12;
        Block { flags, is_executable: flags & EXECUTABLE != 0, ..self }
    }

    /// The address on the GPU of what the program has at an address in the block.
    pub fn gpu_address(&self, address: u64) -> u64 {
        if self.registered > 0 { ALIAS | address } else { address }
    }
}

impl Memory {
    /// Reserves the arena's addresses.
    fn reserve(&mut self) -> Result<(), Status> {
        if !self.is_reserved {
            map(ARENA, libc::PROT_NONE, libc::MAP_FIXED_NOREPLACE)?;
            self.is_reserved = true;
        }
        Ok(())
    }

    /// Allocates zeroed memory at the lowest place that is free.
    ///
    /// # Errors
    /// [`Status::NoMemory`].
    pub fn allocate(&mut self, bytes: u64, node: u32, flags: u32) -> Result<u64, Status> {
        self.reserve()?;
        let bytes = bytes.max(1).checked_next_multiple_of(PAGE).ok_or(Status::NoMemory)?;
        let align = if bytes >= LARGE_PAGE { LARGE_PAGE } else { GUARD };
        let mut start = ARENA.start;
        for (address, block) in &self.allocations {
            if start.checked_add(bytes + GUARD).is_some_and(|end| end <= *address) {
                break;
            }
            start = start.max((address + block.bytes + GUARD).next_multiple_of(align));
            start = start.next_multiple_of(align);
        }
        let end = start.checked_add(bytes).filter(|end| *end <= ARENA.end);
        let range = start..end.ok_or(Status::NoMemory)?;
        map(range, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_FIXED)?;
        self.allocations.insert(start, Block::new(bytes, start, node).with_flags(flags));
        Ok(start)
    }

    /// Frees an allocation that no GPU has mapped any more.
    ///
    /// # Errors
    /// [`Status::InvalidParameter`] if there is none at this address, or it is mapped.
    pub fn free(&mut self, address: u64) -> Result<(), Status> {
        let block = self.allocations.get(&address).filter(|block| block.nodes == 0);
        block.ok_or(Status::InvalidParameter)?;
        let block = self.allocations.remove(&address).ok_or(Status::InvalidParameter)?;
        map(address..address + block.bytes, libc::PROT_NONE, libc::MAP_FIXED)
    }

    /// Registers memory of the program.
    ///
    /// # Errors
    /// [`Status::InvalidParameter`] for addresses that no program has.
    pub fn register(&mut self, address: u64, bytes: u64, flags: u32) -> Result<(), Status> {
        let end = address.checked_add(bytes).filter(|end| *end <= ALIAS);
        end.ok_or(Status::InvalidParameter)?;
        let new = || Block::new(bytes, address, 0).with_flags(flags);
        let block = self.registered.entry(address).or_insert_with(new);
        block.bytes = block.bytes.max(bytes);
        block.registered += 1;
        Ok(())
    }

    /// Undoes a registration.
    ///
    /// # Errors
    /// [`Status::MemoryNotRegistered`].
    pub fn deregister(&mut self, address: u64) -> Result<(), Status> {
        let block = self.registered.get_mut(&address).ok_or(Status::MemoryNotRegistered)?;
        block.registered -= 1;
        if block.registered == 0 {
            self.registered.remove(&address);
        }
        Ok(())
    }

    /// Says whether a GPU may access these pages of the program's from now on. What was allocated for
    /// GPUs is theirs anyway.
    pub fn share(&mut self, node: u32, pages: Range<u64>, may_access: bool) {
        let last = self.allocations.range(..pages.end).next_back();
        if last.is_none_or(|(start, block)| start + block.bytes <= pages.start) {
            self.shared.set(node, pages, may_access);
        }
    }

    /// The block that an address of the program or of the GPU is in, and where it begins in the
    /// program.
    pub fn block_around(&self, address: u64) -> Option<(u64, &Block)> {
        let address = host_address(address);
        [&self.allocations, &self.registered].into_iter().find_map(|blocks| {
            let (start, block) = blocks.range(..=address).next_back()?;
            (address < start + block.bytes).then_some((*start, block))
        })
    }

    /// The same, to be changed.
    pub fn block_around_mut(&mut self, address: u64) -> Option<(u64, &mut Block)> {
        let address = host_address(address);
        [&mut self.allocations, &mut self.registered].into_iter().find_map(|blocks| {
            let (start, block) = blocks.range_mut(..=address).next_back()?;
            (address < start + block.bytes).then_some((*start, block))
        })
    }

    /// The pages that a GPU may access.
    pub fn mapped(&self, node: u32) -> Extents {
        let is_mapped = |block: &Block| block.nodes >> node & 1 != 0;
        let mut extents = Extents::new();
        for (start, block) in self.allocations.iter().filter(|(_, block)| is_mapped(block)) {
            extents.insert(*start, Extent { end: start + block.bytes, host: block.host });
        }
        let mut last: Option<(u64, u64)> = None;
        let mut add = |range: Option<(u64, u64)>| {
            let extent = |(start, end)| (start, Extent { end, host: host_address(start) });
            extents.extend(range.map(extent));
        };
        for (start, block) in self.registered.iter().filter(|(_, block)| is_mapped(block)) {
            let begin = ALIAS | (start / PAGE * PAGE);
            let end = ALIAS | (start + block.bytes).next_multiple_of(PAGE);
            last = match last {
                Some((first, after)) if begin <= after => Some((first, after.max(end))),
                before => {
                    add(before);
                    Some((begin, end))
                }
            };
        }
        add(last);
        extents
            .extend(self.shared.of(node).map(|(start, end)| (start, Extent { end, host: start })));
        extents
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

/// Maps anonymous memory, or nothing, at fixed addresses.
fn map(range: Range<u64>, protection: libc::c_int, fixed: libc::c_int) -> Result<(), Status> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    let length = (range.end - range.start) as usize;
    // SAFETY: the addresses are the arena's, which is reserved for this, or nothing is replaced.
    let place = unsafe { libc::mmap(range.start as *mut _, length, protection, flags, -1, 0) };
    if place as u64 == range.start {
        return Ok(());
    }
    if place != libc::MAP_FAILED {
        // SAFETY: an older kernel put it elsewhere; nobody has it.
        unsafe { libc::munmap(place, length) };
    }
    Err(Status::NoMemory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registered_memory_is_mapped_in_pages_as_long_as_anybody_needs_it() {
        let mut memory = Memory::default();
        for (address, bytes) in [(0x10_0100, 0x100), (0x10_0f00, 0x200), (0x10_4000, 0x10)] {
            memory.register(address, bytes, 0).unwrap();
            memory.block_around_mut(address).unwrap().1.nodes = 2;
        }
        let both = memory.mapped(1);
        let gpu = |start: u64, end: u64| (ALIAS | start, Extent { end: ALIAS | end, host: start });
        assert_eq!(both, Extents::from([gpu(0x10_0000, 0x10_2000), gpu(0x10_4000, 0x10_5000)]));
        assert_eq!(memory.mapped(2), Extents::new());
        memory.deregister(0x10_0f00).unwrap();
        let one = memory.mapped(1);
        assert_eq!(one, Extents::from([gpu(0x10_0000, 0x10_1000), gpu(0x10_4000, 0x10_5000)]));
        let (start, Extent { end, host }) = gpu(0x10_0000, 0x10_1000);
        let change = [Change::Unmap(start), Change::Map { range: start..end, host }];
        assert_eq!(changes(&both, &one), change);
        assert_eq!(memory.deregister(0x10_0f00), Err(Status::MemoryNotRegistered));
        for (address, bytes) in [(u64::MAX - 8, 16), (ALIAS - 8, 16), (ALIAS, 16)] {
            assert_eq!(memory.register(address, bytes, 0), Err(Status::InvalidParameter));
        }
    }

    #[test]
    fn allocations_are_zero_apart_and_at_the_same_place_when_made_again() {
        let mut memory = Memory::default();
        let first = memory.allocate(100, 1, 0).unwrap();
        let second = memory.allocate(3 << 20, 1, 0).unwrap();
        assert!(second >= first + PAGE + GUARD && second.is_multiple_of(LARGE_PAGE));
        // SAFETY: just allocated.
        unsafe { *(first as *mut u8) = 7 };
        memory.free(first).unwrap();
        assert_eq!(memory.allocate(100, 1, 0).unwrap(), first);
        // SAFETY: as above.
        assert_eq!(unsafe { *(first as *const u8) }, 0);
        assert_eq!(memory.allocate(u64::MAX - 5, 1, 0), Err(Status::NoMemory));
    }

    #[test]
    fn what_was_allocated_for_gpus_is_not_shared() {
        let mut memory = Memory::default();
        let start = memory.allocate(PAGE, 1, 0).unwrap();
        memory.share(1, start - PAGE..start + PAGE, true);
        assert_eq!(memory.mapped(1), Extents::new());
        memory.share(1, start - PAGE..start, true);
        let extent = Extent { end: start, host: start - PAGE };
        assert_eq!(memory.mapped(1), Extents::from([(start - PAGE, extent)]));
    }
}
