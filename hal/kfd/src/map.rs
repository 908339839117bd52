//! The map of the memory that GPUs may access. Engines access memory only through it.
//!
//! Packets, signals, queues and the memory that they name can be written by GPU code. An address
//! from there is a [`GpuAddress`], which cannot be dereferenced: a [`View`] looks it up in the map,
//! and lends the memory for as long as the view is held. Meanwhile nothing is mapped or unmapped,
//! so that no other thread frees memory between the check and the access.
//!
//! The program can unmap memory without telling the driver although it is registered with the
//! runtime. The engines look for such memory before each packet and while kernels run. The program
//! must not unmap it just while the GPU accesses it.

use crate::memory::{Change, Extent, Extents, Memory, changes};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An address from memory that GPU code can write: it may be any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuAddress(pub u64);

impl GpuAddress {
    /// Adds an offset. Wraps around, as on the GPU.
    pub fn plus(self, bytes: u64) -> GpuAddress {
        GpuAddress(self.0.wrapping_add(bytes))
    }
}

/// An access that a GPU may not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Address of the first inaccessible byte, or of a misaligned word.
    pub address: u64,
}

/// All memory, and the parts of it that each GPU may access.
#[derive(Default)]
pub struct Map(Mutex<Mapped>);

#[derive(Default)]
struct Mapped {
    memory: Memory,
    /// Accessible memory by node.
    accessible: BTreeMap<u32, Extents>,
}

impl Map {
    fn lock(&self) -> MutexGuard<'_, Mapped> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the memory that the GPU of a node may access. The thread must not hold another view.
    pub fn view(&self, node: u32) -> View<'_> {
        View { mapped: self.lock(), node }
    }

    /// Calls `inspect` with the locked memory.
    pub fn with<T>(&self, inspect: impl FnOnce(&Memory) -> T) -> T {
        inspect(&self.lock().memory)
    }

    /// Changes memory. Calls `post` with the changes of each node's accessible memory, if any,
    /// before the map is unlocked.
    pub fn change<T>(
        &self,
        nodes: Range<u32>,
        change: impl FnOnce(&mut Memory) -> T,
        mut post: impl FnMut(u32, Vec<Change>),
    ) -> T {
        let mut mapped = self.lock();
        let Mapped { memory, accessible } = &mut *mapped;
        let result = change(memory);
        for node in nodes {
            let after = memory.mapped(node);
            let before = accessible.entry(node).or_default();
            let differences = changes(before, &after);
            *before = after;
            if !differences.is_empty() {
                post(node, differences);
            }
        }
        result
    }
}

/// The memory that a GPU may access. The map is locked while the view is held.
pub struct View<'a> {
    mapped: MutexGuard<'a, Mapped>,
    node: u32,
}

impl View<'_> {
    /// The ranges that the GPU may access.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.extents().map(|(start, extent)| *start..extent.end)
    }

    fn extents(&self) -> impl Iterator<Item = (&u64, &Extent)> {
        self.mapped.accessible.get(&self.node).into_iter().flatten()
    }

    /// The parts of a range that the GPU may access, in ascending order, each with the address of
    /// its first byte in this process.
    pub fn within(&self, range: Range<u64>) -> Vec<(Range<u64>, u64)> {
        let part = |(start, extent): (&u64, &Extent)| {
            let part = range.start.max(*start)..range.end.min(extent.end);
            (part.start < part.end).then(|| (part.clone(), extent.host + (part.start - start)))
        };
        self.extents().filter_map(part).collect()
    }

    /// Checks that the GPU may access all of these bytes.
    ///
    /// # Errors
    /// [`Violation`] at the first byte that it may not access.
    pub fn check(&self, start: GpuAddress, bytes: u64) -> Result<(), Violation> {
        #[cfg(test)]
        if tests::SKIP_CHECKS.load(std::sync::atomic::Ordering::Relaxed) {
            return Ok(());
        }
        let end = start.0.checked_add(bytes).ok_or(Violation { address: start.0 })?;
        let mut address = start.0;
        while address < end {
            address = self.extent(GpuAddress(address))?.1.end;
        }
        Ok(())
    }

    /// The extent around an address, and its first address.
    fn extent(&self, at: GpuAddress) -> Result<(u64, Extent), Violation> {
        let extents = self.mapped.accessible.get(&self.node);
        let last = extents.and_then(|extents| extents.range(..=at.0).next_back());
        let around = last.filter(|(_, extent)| extent.end > at.0);
        around.map(|(start, extent)| (*start, *extent)).ok_or(Violation { address: at.0 })
    }

    /// Checks that the GPU may execute code at an address (`HsaMemFlags.ExecuteAccess`, which the
    /// driver turns into a bit of the GPU's page table entries).
    ///
    /// # Errors
    /// [`Violation`] if it may not.
    pub fn check_executable(&self, at: GpuAddress) -> Result<(), Violation> {
        self.check(at, 4)?;
        let block = self.mapped.memory.block_around(at.0);
        let is_executable = block.is_some_and(|block| block.is_executable);
        is_executable.then_some(()).ok_or(Violation { address: at.0 })
    }

    /// Pointer to an aligned word of `bytes` bytes. It is valid while the view is held: all memory
    /// that is mapped for a GPU is mapped in this process, readable and writable.
    fn word(&self, at: GpuAddress, bytes: u64) -> Result<*mut u8, Violation> {
        if !at.0.is_multiple_of(bytes) {
            return Err(Violation { address: at.0 });
        }
        self.check(at, bytes)?;
        // An aligned word is within one page.
        Ok(self.contiguous(at, bytes)?.0)
    }

    /// Pointer to the first of these bytes, and the number of them that are contiguous in this
    /// process.
    fn contiguous(&self, at: GpuAddress, bytes: u64) -> Result<(*mut u8, u64), Violation> {
        #[cfg(test)]
        if tests::SKIP_CHECKS.load(std::sync::atomic::Ordering::Relaxed) {
            return Ok((tests::unchecked_pointer(at), bytes));
        }
        let (start, extent) = self.extent(at)?;
        let pointer = (extent.host + (at.0 - start)) as *mut u8;
        Ok((pointer, bytes.min(extent.end - at.0)))
    }

    /// Borrows a 16-bit word. The program and GPU code may access it at the same time.
    ///
    /// # Errors
    /// [`Violation`] if the word is misaligned or the GPU may not access it.
    pub fn word16(&self, at: GpuAddress) -> Result<&AtomicU16, Violation> {
        let pointer = self.word(at, 2)?;
        // SAFETY: aligned, and valid while the view is borrowed; all access is atomic.
        Ok(unsafe { AtomicU16::from_ptr(pointer.cast()) })
    }

    /// Borrows a 32-bit word, as [`View::word16`].
    ///
    /// # Errors
    /// As [`View::word16`].
    pub fn word32(&self, at: GpuAddress) -> Result<&AtomicU32, Violation> {
        let pointer = self.word(at, 4)?;
        // SAFETY: as in `word16`.
        Ok(unsafe { AtomicU32::from_ptr(pointer.cast()) })
    }

    /// Borrows a 64-bit word, as [`View::word16`].
    ///
    /// # Errors
    /// As [`View::word16`].
    pub fn word64(&self, at: GpuAddress) -> Result<&AtomicU64, Violation> {
        let pointer = self.word(at, 8)?;
        // SAFETY: as in `word16`.
        Ok(unsafe { AtomicU64::from_ptr(pointer.cast()) })
    }

    /// Copies memory to `bytes`.
    ///
    /// # Errors
    /// [`Violation`] if the GPU may not access all of it.
    pub fn read(&self, from: GpuAddress, bytes: &mut [u8]) -> Result<(), Violation> {
        self.check(from, bytes.len() as u64)?;
        let mut done = 0;
        while done < bytes.len() {
            let left = &mut bytes[done..];
            let (source, count) = self.contiguous(from.plus(done as u64), left.len() as u64)?;
            // SAFETY: the source has `count` bytes, and a buffer borrowed mutably is no GPU memory.
            unsafe { std::ptr::copy_nonoverlapping(source, left.as_mut_ptr(), count as usize) };
            done += count as usize;
        }
        Ok(())
    }

    /// Copies `bytes` to memory.
    ///
    /// # Errors
    /// [`Violation`] if the GPU may not access all of it; nothing is written then.
    pub fn write(&self, to: GpuAddress, bytes: &[u8]) -> Result<(), Violation> {
        self.check(to, bytes.len() as u64)?;
        let mut done = 0;
        while done < bytes.len() {
            let left = &bytes[done..];
            let (destination, count) = self.contiguous(to.plus(done as u64), left.len() as u64)?;
            // SAFETY: the destination has `count` bytes, and a borrowed buffer is no GPU memory.
            unsafe { std::ptr::copy_nonoverlapping(left.as_ptr(), destination, count as usize) };
            done += count as usize;
        }
        Ok(())
    }

    /// Copies memory. Source and destination may overlap.
    ///
    /// # Errors
    /// [`Violation`]; nothing is copied then.
    pub fn copy(&self, from: GpuAddress, to: GpuAddress, bytes: u64) -> Result<(), Violation> {
        self.check(from, bytes)?;
        self.check(to, bytes)?;
        let mut done = 0;
        while done < bytes {
            let (source, readable) = self.contiguous(from.plus(done), bytes - done)?;
            let (destination, count) = self.contiguous(to.plus(done), readable)?;
            // SAFETY: both have `count` bytes.
            unsafe { std::ptr::copy(source, destination, count as usize) };
            done += count;
        }
        Ok(())
    }

    /// Fills memory with `times` copies of a word.
    ///
    /// # Errors
    /// [`Violation`]; nothing is written then.
    pub fn fill(&self, at: GpuAddress, word: u32, times: u64) -> Result<(), Violation> {
        self.check(at, 4 * times)?;
        let word = word.to_le_bytes();
        let mut done = 0;
        while done < 4 * times {
            let (pointer, count) = self.contiguous(at.plus(done), 4 * times - done)?;
            for index in 0..count as usize {
                let byte = word[(done as usize + index) % 4];
                // SAFETY: `count` bytes are valid. Concurrent accesses may see any mix of old and
                // new.
                unsafe { pointer.add(index).write(byte) };
            }
            done += count;
        }
        Ok(())
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::memory::{Block, PAGE};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Disables all checks of addresses, for a negative control.
    pub static SKIP_CHECKS: AtomicBool = AtomicBool::new(false);

    /// Bit that is set in GPU addresses of tests, and clear in the process's addresses.
    pub const ALIAS: u64 = 1 << 47;

    /// Pointer to the memory at a GPU address, without any check.
    pub fn unchecked_pointer(at: GpuAddress) -> *mut u8 {
        (at.0 & !ALIAS) as *mut u8
    }

    /// Maps a page of the process for the GPU of node 1.
    pub fn map_page(memory: &mut Memory, page: u64) {
        let (bytes, nodes, unmapped) = (PAGE, 1 << 1, None);
        let block = Block { bytes, host: page, node: 0, is_executable: true, nodes, unmapped };
        assert!(memory.add(ALIAS | page, block));
    }

    /// Two pages.
    #[repr(align(4096))]
    struct Pages([u64; 1024]);

    /// A map in which the GPU of node 1 may access the first of two pages, and the GPU's addresses
    /// of both.
    fn map(pages: &mut Pages) -> (Map, [GpuAddress; 2]) {
        let start = pages.0.as_mut_ptr() as u64;
        let map = Map::default();
        map.change(1..3, |memory| map_page(memory, start), |_, _| {});
        let first = GpuAddress(map.view(1).ranges().next().unwrap().start);
        (map, [first, first.plus(4096)])
    }

    #[test]
    fn only_memory_mapped_for_a_gpu_is_lent() {
        let mut pages = Box::new(Pages([0; 1024]));
        let (map, [mapped, unmapped]) = map(&mut pages);
        let view = map.view(1);
        view.word64(mapped.plus(4088)).unwrap().store(7, Ordering::Release);
        assert_eq!(view.word32(mapped.plus(4088)).unwrap().load(Ordering::Acquire), 7);
        let violation = |address: u64| Err(Violation { address });
        assert_eq!(view.check(mapped, 4096), Ok(()));
        assert_eq!(view.check(mapped.plus(1), 4096), violation(mapped.0 + 4096));
        assert_eq!(view.check(unmapped, 1), violation(unmapped.0));
        assert_eq!(view.check(GpuAddress(u64::MAX - 3), 8), violation(u64::MAX - 3));
        assert_eq!(view.word64(mapped.plus(4)).map(drop), violation(mapped.0 + 4));
        assert_eq!(view.copy(mapped, unmapped, 1), violation(unmapped.0));
        assert_eq!(view.fill(mapped.plus(4092), 0, 2), violation(mapped.0 + 4096));
        assert_eq!(view.read(unmapped, &mut [0]), violation(unmapped.0));
        drop(view);
        assert_eq!(map.view(2).check(mapped, 1), violation(mapped.0));
    }

    #[test]
    fn only_executable_memory_may_be_executed() {
        let mut pages = Box::new(Pages([0; 1024]));
        let (map, [page, _]) = map(&mut pages);
        assert_eq!(map.view(1).check_executable(page), Ok(()));
        let set = |memory: &mut Memory| {
            memory.blocks.values_mut().for_each(|block| block.is_executable = false);
        };
        map.change(1..2, set, |_, _| {});
        let violation = Err(Violation { address: page.0 });
        assert_eq!(map.view(1).check_executable(page), violation);
    }

    #[test]
    fn accesses_across_blocks_follow_gpu_addresses() {
        let mut pages = Box::new(Pages([0; 1024]));
        let start = pages.0.as_mut_ptr() as u64;
        let map = Map::default();
        // Neighbours in GPU addresses, in the opposite order in the process.
        let add = |memory: &mut Memory| {
            for (address, host) in [(0x10_0000, start + PAGE), (0x10_1000, start)] {
                let is_executable = false;
                let (bytes, nodes, unmapped) = (PAGE, 1 << 1, None);
                let block = Block { bytes, host, node: 0, is_executable, nodes, unmapped };
                assert!(memory.add(address, block));
            }
        };
        map.change(1..2, add, |_, _| {});
        let view = map.view(1);
        let across = GpuAddress(0x10_0ffe);
        view.fill(across, 0x0403_0201, 2).unwrap();
        let mut bytes = [0; 10];
        view.copy(across, GpuAddress(0x10_1100), 8).unwrap();
        view.read(GpuAddress(0x10_1100), &mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3, 4, 1, 2, 3, 4, 0, 0]);
        assert_eq!(pages.0[0] & 0xffff_ffff, 0x0201_0403);
    }
}
