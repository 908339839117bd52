//! Marks on the bits of device memory.

use crate::memory::{Memory, Region, RegionMut};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Bytes per page.
const PAGE: u64 = 4096;
/// Content of missing pages: no marks.
static CLEAR: [u8; PAGE as usize] = [0; PAGE as usize];

/// Marks on the bits of device memory, as a separate memory whose data are marks. All addresses are
/// mapped; pages are allocated on the first store.
pub struct MarkedMemory {
    pages: FxHashMap<u64, Box<[u8; PAGE as usize]>>,
    /// Addresses that can have marks; stores elsewhere are dropped.
    followed: Range<u64>,
    /// Destination of dropped stores.
    sink: Box<[u8; PAGE as usize]>,
}

impl Default for MarkedMemory {
    /// A memory without marks, for all addresses.
    fn default() -> MarkedMemory {
        MarkedMemory::within(0..u64::MAX)
    }
}

impl MarkedMemory {
    /// A memory without marks, which keeps only marks in the pages of a range.
    pub fn within(followed: Range<u64>) -> MarkedMemory {
        MarkedMemory { pages: FxHashMap::default(), followed, sink: Box::new([0; PAGE as usize]) }
    }

    /// Returns `true` if no mark has ever been stored.
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
