//! Marks on the bits of device memory.

use crate::memory::{Memory, Region, RegionMut};
use rustc_hash::FxHashMap;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// What is not there is not marked.
static CLEAR: [u8; PAGE as usize] = [0; PAGE as usize];

/// Marks on the bits of device memory, as a memory of their own: what is stored there are marks. It
/// has every address, and of pages that nothing was stored to no bytes.
#[derive(Default)]
pub struct MarkedMemory {
    pages: FxHashMap<u64, Box<[u8; PAGE as usize]>>,
}

impl MarkedMemory {
    /// Whether no mark was ever stored.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
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
        let page = self.pages.entry(base).or_insert_with(|| Box::new([0; PAGE as usize]));
        Some(RegionMut { base, bytes: &mut page[..], is_shared: false })
    }
}
