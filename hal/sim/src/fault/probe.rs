//! Memory that can be accessed without being changed.

use crate::memory::{Memory, Region, RegionMut};
use std::ops::Range;

/// A memory with the same access rights as another one, whose content is not changed by writes.
pub struct Probe<'a> {
    memory: &'a mut dyn Memory,
    /// Copy of the bytes that the last write may change.
    copy: Vec<u8>,
}

impl<'a> Probe<'a> {
    /// Wraps a memory.
    pub fn new(memory: &'a mut dyn Memory) -> Probe<'a> {
        Probe { memory, copy: Vec::new() }
    }
}

impl Memory for Probe<'_> {
    fn readable(&mut self, address: u64, bytes: usize) -> Option<Region<'_>> {
        self.memory.readable(address, bytes)
    }

    fn writable(&mut self, address: u64, bytes: usize) -> Option<RegionMut<'_>> {
        let region = self.memory.writable(address, bytes)?;
        let start = usize::try_from(address.checked_sub(region.base)?).ok()?;
        let end = start.saturating_add(bytes.max(1)).min(region.bytes.len());
        self.copy.clear();
        self.copy.extend_from_slice(region.bytes.get(start..end)?);
        Some(RegionMut { base: address, bytes: &mut self.copy, is_shared: false })
    }

    fn allocation(&self, address: u64) -> Option<Range<u64>> {
        self.memory.allocation(address)
    }
}
