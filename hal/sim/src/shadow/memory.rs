//! Marks on the bits of device memory.

use crate::memory::{Memory, Region, RegionMut};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// What is not there is not marked.
static CLEAR: [u8; PAGE as usize] = [0; PAGE as usize];

/// Marks on the bits of device memory, as a memory of their own: what is stored there are marks. It
/// has every address, and of pages that nothing was stored to no bytes.
pub struct MarkedMemory {
    pages: FxHashMap<u64, Box<[u8; PAGE as usize]>>,
    /// The addresses that have marks; what is stored elsewhere is dropped.
    followed: Range<u64>,
    /// Where dropped stores go.
    sink: Box<[u8; PAGE as usize]>,
}

impl Default for MarkedMemory {
    /// A memory without marks that keeps all that it is given.
    fn default() -> MarkedMemory {
        MarkedMemory::within(0..u64::MAX)
    }
}

impl MarkedMemory {
    /// A memory without marks that keeps those in the pages of a range.
    pub fn within(followed: Range<u64>) -> MarkedMemory {
        MarkedMemory { pages: FxHashMap::default(), followed, sink: Box::new([0; PAGE as usize]) }
    }

    /// Whether no mark was ever stored.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Marks all bits of a range.
    pub fn mark(&mut self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            let Some(region) = self.writable(at, 1) else { return };
            let first = (at - region.base) as usize;
            let end = range.end.min(region.base.saturating_add(PAGE));
            region.bytes[first..(end - region.base) as usize].fill(!0);
            at = end;
        }
    }
}

impl Memory for MarkedMemory {
    fn readable(&mut self, address: u64, _: usize) -> Option<Region<'_>> {
        let base = address / PAGE * PAGE;
        let bytes = self.pages.get(&base).map_or(&CLEAR[..], |page| &page[..]);
        Some(Region { base, bytes })
    }

    fn writable(&mut self, address: u64, _: usize) -> Option<RegionMut<'_>> {
        let base = address / PAGE * PAGE;
        let is_followed =
            base < self.followed.end && base.saturating_add(PAGE) > self.followed.start;
        let page = if is_followed {
            self.pages.entry(base).or_insert_with(|| Box::new([0; PAGE as usize]))
        } else {
            &mut self.sink
        };
        Some(RegionMut { base, bytes: &mut page[..], is_shared: false })
    }
}
