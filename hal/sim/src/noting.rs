//! Memory that notes what is written to it.

use crate::memory::{Memory, Region, RegionMut};
use flipwave_device::Address;
use std::ops::Range;

/// A byte of device memory that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenByte {
    /// Where it is.
    pub address: Address,
    /// What it was before.
    pub before: u8,
    /// What it is now: where it was written several times, the last value.
    pub after: u8,
}

/// Another memory, of which it hands out just the bytes that are asked for, and notes those that
/// may be written.
pub struct Noting<'a> {
    memory: &'a mut dyn Memory,
    /// Addresses, and what was there before.
    written: Vec<(u64, u8)>,
}

impl<'a> Noting<'a> {
    /// Nothing written yet.
    pub fn new(memory: &'a mut dyn Memory) -> Noting<'a> {
        Noting { memory, written: Vec::new() }
    }
}

impl Memory for Noting<'_> {
    fn readable(&mut self, address: u64, bytes: usize) -> Option<Region<'_>> {
        self.memory.readable(address, bytes)
    }

    fn writable(&mut self, address: u64, bytes: usize) -> Option<RegionMut<'_>> {
        let region = self.memory.writable(address, bytes)?;
        let start = usize::try_from(address.checked_sub(region.base)?).ok()?;
        let end = start.saturating_add(bytes).min(region.bytes.len());
        let bytes = region.bytes.get_mut(start..end)?;
        self.written.extend((address..).zip(bytes.iter().copied()));
        Some(RegionMut { base: address, bytes })
    }

    fn allocation(&self, address: u64) -> Option<Range<u64>> {
        self.memory.allocation(address)
    }

    fn take_written(&mut self) -> Vec<WrittenByte> {
        let Noting { memory, written } = self;
        let written = written.drain(..).filter_map(|(address, before)| {
            let after = *memory.readable(address, 1)?.get(address, 1)?.first()?;
            Some(WrittenByte { address: Address(address), before, after })
        });
        written.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{AddressSpace, write_bytes};
    use flipwave_device::AccessKind;

    #[test]
    fn each_byte_written_is_told_once_with_what_it_was_and_is() {
        let mut space = AddressSpace::default();
        let address = space.allocate(64).unwrap();
        space.write(address, &[1, 2, 3, 4]).unwrap();
        let mut noting = Noting::new(&mut space);
        write_bytes(&mut noting, address.0 + 1, &[2, 9], AccessKind::Write, None).unwrap();
        noting.readable(address.0, 4).unwrap();
        let byte = |offset: u64, before, after| {
            let address = Address(address.0 + offset);
            WrittenByte { address, before, after }
        };
        assert_eq!(noting.take_written(), [byte(1, 2, 2), byte(2, 3, 9)]);
        assert_eq!(noting.take_written(), []);
    }
}
