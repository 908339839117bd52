//! Memory that records writes.

use super::access::{Memory, Region, RegionMut};
use flipwave_device::Address;
use flipwave_machine::WrittenByte;
use std::ops::Range;

/// A wrapper that hands out only the requested bytes of another memory, and records those that may
/// be written.
pub struct WriteRecorder<'a> {
    memory: &'a mut dyn Memory,
    /// Addresses, and the values before the write.
    written: Vec<(u64, u8)>,
}

impl<'a> WriteRecorder<'a> {
    /// Wraps `memory`, with no writes recorded.
    pub fn new(memory: &'a mut dyn Memory) -> WriteRecorder<'a> {
        WriteRecorder { memory, written: Vec::new() }
    }
}

impl Memory for WriteRecorder<'_> {
    fn readable(&mut self, address: u64, bytes: usize) -> Option<Region<'_>> {
        self.memory.readable(address, bytes)
    }

    fn writable(&mut self, address: u64, bytes: usize) -> Option<RegionMut<'_>> {
        let region = self.memory.writable(address, bytes)?;
        let start = usize::try_from(address.checked_sub(region.base)?).ok()?;
        let end = start.saturating_add(bytes).min(region.bytes.len());
        let is_shared = region.is_shared;
        let bytes = region.bytes.get_mut(start..end)?;
        self.written.extend((address..).zip(bytes.iter().copied()));
        Some(RegionMut { base: address, bytes, is_shared })
    }

    fn allocation(&self, address: u64) -> Option<Range<u64>> {
        self.memory.allocation(address)
    }

    fn take_written(&mut self) -> Vec<WrittenByte> {
        let WriteRecorder { memory, written } = self;
        // For a byte that was handed out more than once, keep the first value.
        written.sort_by_key(|(address, _)| *address);
        written.dedup_by_key(|(address, _)| *address);
        let written = written.drain(..).filter_map(|(address, before)| {
            let after = *memory.readable(address, 1)?.get(address, 1)?.first()?;
            Some(WrittenByte { address: Address(address), before, after })
        });
        written.collect()
    }
}

#[cfg(test)]
mod tests;
