//! What of memory the GPUs may access, and the only way in which their engines get at it.
//!
//! Packets, signals, queues and what they name lie in memory that GPU code can write. An address
//! from there is a [`GpuAddress`], at which nothing can be accessed: a [`View`] looks it up in the
//! map of what the GPU may touch, and lends what is there for as long as the view is held. While
//! one is, nothing is mapped or unmapped, so that no other thread gives memory back between the
//! look and the access. What the program gives back to the system although it has registered it
//! with the runtime is looked for before each packet, and while kernels run; it must not do so just
//! while the GPU accesses it.

use crate::memory::{Change, Extent, Extents, Memory, changes};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An address that GPU code can have made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuAddress(pub u64);

impl GpuAddress {
    /// The address this many bytes on. It wraps around as the GPU's do.
    pub fn plus(self, bytes: u64) -> GpuAddress {
        GpuAddress(self.0.wrapping_add(bytes))
    }
}

/// An access that the GPU must not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The first byte that is not the GPU's, or a word that is not aligned.
    pub address: u64,
}

/// All memory, and what of it each GPU may access.
#[derive(Default)]
pub struct Map(Mutex<Mapped>);

#[derive(Default)]
struct Mapped {
    memory: Memory,
    views: BTreeMap<u32, Extents>,
}

impl Map {
    fn lock(&self) -> MutexGuard<'_, Mapped> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the GPU of a node may access, held as it is. No other view is to be taken meanwhile.
    pub fn view(&self, node: u32) -> View<'_> {
        View { mapped: self.lock(), node }
    }

    /// Looks at memory.
    pub fn with<T>(&self, look: impl FnOnce(&Memory) -> T) -> T {
        look(&self.lock().memory)
    }

    /// Changes memory; `posted` gets what is different for each of these nodes, in order, before
    /// anybody else sees it.
    pub fn change<T>(
        &self,
        nodes: Range<u32>,
        change: impl FnOnce(&mut Memory) -> T,
        mut posted: impl FnMut(u32, Vec<Change>),
    ) -> T {
        let mut mapped = self.lock();
        let Mapped { memory, views } = &mut *mapped;
        let result = change(memory);
        for node in nodes {
            let after = memory.mapped(node);
            let before = views.entry(node).or_default();
            let news = changes(before, &after);
            *before = after;
            if !news.is_empty() {
                posted(node, news);
            }
        }
        result
    }
}

/// What a GPU may access, while it is held.
pub struct View<'a> {
    mapped: MutexGuard<'a, Mapped>,
    node: u32,
}

impl View<'_> {
    /// The ranges that the GPU may access.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        let view = self.mapped.views.get(&self.node).into_iter().flatten();
        view.map(|(start, extent)| *start..extent.end)
    }

    /// What of a range the GPU may access, in order, and where this process has the first byte of each.
    pub fn within(&self, range: Range<u64>) -> Vec<(Range<u64>, u64)> {
        let view = self.mapped.views.get(&self.node).into_iter().flatten();
        let part = |(start, extent): (&u64, &Extent)| {
            let part = range.start.max(*start)..range.end.min(extent.end);
            (part.start < part.end).then(|| (part.clone(), extent.host + (part.start - start)))
        };
        view.filter_map(part).collect()
    }

    /// Checks that the GPU may access all of these bytes.
    ///
    /// # Errors
    /// [`Violation`].
    pub fn check(&self, start: GpuAddress, bytes: u64) -> Result<(), Violation> {
        #[cfg(test)]
        if tests::CHECKS_NOTHING.load(std::sync::atomic::Ordering::Relaxed) {
            return Ok(());
        }
        let end = start.0.checked_add(bytes).ok_or(Violation { address: start.0 })?;
        let mut address = start.0;
        while address < end {
            address = self.extent(GpuAddress(address))?.1.end;
        }
        Ok(())
    }

    /// The pages around an address, and their first address.
    fn extent(&self, at: GpuAddress) -> Result<(u64, Extent), Violation> {
        let before =
            self.mapped.views.get(&self.node).and_then(|all| all.range(..=at.0).next_back());
        let around = before.filter(|(_, extent)| extent.end > at.0);
        around.map(|(start, extent)| (*start, *extent)).ok_or(Violation { address: at.0 })
    }

    /// Checks that the GPU may execute what lies at an address (`HsaMemFlags.ExecuteAccess`, which
    /// the driver makes a bit of the GPU's page tables).
    ///
    /// # Errors
    /// [`Violation`].
    pub fn check_executable(&self, at: GpuAddress) -> Result<(), Violation> {
        self.check(at, 4)?;
        let block = self.mapped.memory.block_around(at.0);
        let is_executable = block.is_some_and(|block| block.is_executable);
        is_executable.then_some(()).ok_or(Violation { address: at.0 })
    }

    /// Where this process has a word of this many bytes that the GPU may access. It stays while the
    /// view is held: all that is mapped for a GPU is mapped in the process, readable and writable.
    fn place(&self, at: GpuAddress, bytes: u64) -> Result<*mut u8, Violation> {
        if !at.0.is_multiple_of(bytes) {
            return Err(Violation { address: at.0 });
        }
        self.check(at, bytes)?;
        // Aligned, so that it is in one page.
        Ok(self.piece(at, bytes)?.0)
    }

    /// Where the process has the first of these bytes, and how many of them follow there.
    fn piece(&self, at: GpuAddress, bytes: u64) -> Result<(*mut u8, u64), Violation> {
        #[cfg(test)]
        if tests::CHECKS_NOTHING.load(std::sync::atomic::Ordering::Relaxed) {
            return Ok((tests::unchecked_place(at), bytes));
        }
        let (start, extent) = self.extent(at)?;
        let place = (extent.host + (at.0 - start)) as *mut u8;
        Ok((place, bytes.min(extent.end - at.0)))
    }

    /// A word. Everybody else may access it at the same time.
    ///
    /// # Errors
    /// [`Violation`].
    pub fn word16(&self, at: GpuAddress) -> Result<&AtomicU16, Violation> {
        let place = self.place(at, 2)?;
        // SAFETY: aligned, and there while the view is borrowed; all access is atomic.
        Ok(unsafe { AtomicU16::from_ptr(place.cast()) })
    }

    /// As [`View::word16`].
    ///
    /// # Errors
    /// [`Violation`].
    pub fn word32(&self, at: GpuAddress) -> Result<&AtomicU32, Violation> {
        let place = self.place(at, 4)?;
        // SAFETY: as in `word16`.
        Ok(unsafe { AtomicU32::from_ptr(place.cast()) })
    }

    /// As [`View::word16`].
    ///
    /// # Errors
    /// [`Violation`].
    pub fn word64(&self, at: GpuAddress) -> Result<&AtomicU64, Violation> {
        let place = self.place(at, 8)?;
        // SAFETY: as in `word16`.
        Ok(unsafe { AtomicU64::from_ptr(place.cast()) })
    }

    /// Copies bytes out.
    ///
    /// # Errors
    /// [`Violation`].
    pub fn read(&self, from: GpuAddress, bytes: &mut [u8]) -> Result<(), Violation> {
        self.check(from, bytes.len() as u64)?;
        let mut done = 0;
        while done < bytes.len() {
            let left = &mut bytes[done..];
            let (place, count) = self.piece(from.plus(done as u64), left.len() as u64)?;
            // SAFETY: all of the piece is there, and what is borrowed mutably is not the GPU's.
            unsafe { std::ptr::copy_nonoverlapping(place, left.as_mut_ptr(), count as usize) };
            done += count as usize;
        }
        Ok(())
    }

    /// Copies bytes from one place to another, which may overlap.
    ///
    /// # Errors
    /// [`Violation`]; nothing is copied then.
    pub fn copy(&self, from: GpuAddress, to: GpuAddress, bytes: u64) -> Result<(), Violation> {
        self.check(from, bytes)?;
        self.check(to, bytes)?;
        let mut done = 0;
        while done < bytes {
            let (source, readable) = self.piece(from.plus(done), bytes - done)?;
            let (place, count) = self.piece(to.plus(done), readable)?;
            // SAFETY: all of both pieces is there.
            unsafe { std::ptr::copy(source, place, count as usize) };
            done += count;
        }
        Ok(())
    }

    /// Writes a word this many times, one after the other.
    ///
    /// # Errors
    /// [`Violation`]; nothing is written then.
    pub fn fill(&self, at: GpuAddress, word: u32, times: u64) -> Result<(), Violation> {
        self.check(at, 4 * times)?;
        let word = word.to_le_bytes();
        let mut done = 0;
        while done < 4 * times {
            let (place, count) = self.piece(at.plus(done), 4 * times - done)?;
            for index in 0..count as usize {
                let byte = word[(done as usize + index) % 4];
                // SAFETY: all of the piece is there; nothing is promised of memory that is filled.
                unsafe { place.add(index).write(byte) };
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

    /// The negative control: what holds as long as addresses are checked, and no longer.
    pub static CHECKS_NOTHING: AtomicBool = AtomicBool::new(false);

    /// What GPUs of tests have more in an address than the process has.
    pub const ALIAS: u64 = 1 << 47;

    /// Where an address leads that nobody checks.
    pub fn unchecked_place(at: GpuAddress) -> *mut u8 {
        (at.0 & !ALIAS) as *mut u8
    }

    /// Gives the GPU of node 1 a page of the process.
    pub fn give(memory: &mut Memory, page: u64) {
        let (bytes, nodes, lost) = (PAGE, 1 << 1, None);
        let block = Block { bytes, host: page, node: 0, is_executable: true, nodes, lost };
        assert!(memory.add(ALIAS | page, block));
    }

    /// Two pages.
    #[repr(align(4096))]
    struct Pages([u64; 1024]);

    /// A map in which the GPU of node 1 may access the first of two pages, and where the GPU has
    /// them.
    fn map(pages: &mut Pages) -> (Map, [GpuAddress; 2]) {
        let start = pages.0.as_mut_ptr() as u64;
        let map = Map::default();
        map.change(1..3, |memory| give(memory, start), |_, _| {});
        let first = GpuAddress(map.view(1).ranges().next().unwrap().start);
        (map, [first, first.plus(4096)])
    }

    #[test]
    fn only_what_is_mapped_for_a_gpu_is_lent() {
        let mut pages = Box::new(Pages([0; 1024]));
        let (map, [own, others]) = map(&mut pages);
        let view = map.view(1);
        view.word64(own.plus(4088)).unwrap().store(7, Ordering::Release);
        assert_eq!(view.word32(own.plus(4088)).unwrap().load(Ordering::Acquire), 7);
        let wild = |address: u64| Err(Violation { address });
        assert_eq!(view.check(own, 4096), Ok(()));
        assert_eq!(view.check(own.plus(1), 4096), wild(own.0 + 4096));
        assert_eq!(view.check(others, 1), wild(others.0));
        assert_eq!(view.check(GpuAddress(u64::MAX - 3), 8), wild(u64::MAX - 3));
        assert_eq!(view.word64(own.plus(4)).map(drop), wild(own.0 + 4));
        assert_eq!(view.copy(own, others, 1), wild(others.0));
        assert_eq!(view.fill(own.plus(4092), 0, 2), wild(own.0 + 4096));
        assert_eq!(view.read(others, &mut [0]), wild(others.0));
        drop(view);
        assert_eq!(map.view(2).check(own, 1), wild(own.0));
    }

    #[test]
    fn only_memory_that_was_allocated_for_code_is_executed() {
        let mut pages = Box::new(Pages([0; 1024]));
        let (map, [own, _]) = map(&mut pages);
        assert_eq!(map.view(1).check_executable(own), Ok(()));
        let set = |memory: &mut Memory| {
            memory.blocks.values_mut().for_each(|block| block.is_executable = false);
        };
        map.change(1..2, set, |_, _| {});
        let wild = Err(Violation { address: own.0 });
        assert_eq!(map.view(1).check_executable(own), wild);
    }

    #[test]
    fn bytes_that_the_process_has_apart_are_copied_as_one() {
        let mut pages = Box::new(Pages([0; 1024]));
        let start = pages.0.as_mut_ptr() as u64;
        let map = Map::default();
        // The second page comes first.
        let add = |memory: &mut Memory| {
            for (address, host) in [(0x10_0000, start + PAGE), (0x10_1000, start)] {
                let is_executable = false;
                let (bytes, nodes, lost) = (PAGE, 1 << 1, None);
                let block = Block { bytes, host, node: 0, is_executable, nodes, lost };
                assert!(memory.add(address, block));
            }
        };
        map.change(1..2, add, |_, _| {});
        let view = map.view(1);
        let seam = GpuAddress(0x10_0ffe);
        view.fill(seam, 0x0403_0201, 2).unwrap();
        let mut bytes = [0; 10];
        view.copy(seam, GpuAddress(0x10_1100), 8).unwrap();
        view.read(GpuAddress(0x10_1100), &mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3, 4, 1, 2, 3, 4, 0, 0]);
        assert_eq!(pages.0[0] & 0xffff_ffff, 0x0201_0403);
    }
}
