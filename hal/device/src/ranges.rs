//! Memory of a device that the host may access.

use crate::{Address, DeviceError};
use std::collections::BTreeMap;

/// Address ranges of allocations and loaded code.
#[derive(Clone, Debug, Default)]
pub struct AllocatedRanges {
    /// Length in bytes by start address.
    ranges: BTreeMap<u64, u64>,
}

impl AllocatedRanges {
    /// Adds a range.
    pub fn add(&mut self, start: Address, bytes: u64) {
        self.ranges.insert(start.0, bytes);
    }

    /// Removes the range that begins at an address.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    pub fn remove(&mut self, start: Address) -> Result<(), DeviceError> {
        let missing = DeviceError::NotAllocated { operation: "free", address: start, bytes: 0 };
        self.ranges.remove(&start.0).map(|_| ()).ok_or(missing)
    }

    /// Checks that the bytes of an operation are inside of one range.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    pub fn check(
        &self,
        operation: &'static str,
        address: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let bytes = bytes as u64;
        let preceding = self.ranges.range(..=address.0).next_back();
        let end = address.0.checked_add(bytes);
        match preceding.zip(end) {
            Some(((start, size), end)) if end <= start + size => Ok(()),
            _ => Err(DeviceError::NotAllocated { operation, address, bytes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_outside_of_ranges_are_errors() {
        let mut ranges = AllocatedRanges::default();
        ranges.add(Address(0x1000), 16);
        let is_inside = |ranges: &AllocatedRanges, address, bytes| {
            ranges.check("read", Address(address), bytes).is_ok()
        };
        assert!(is_inside(&ranges, 0x1000, 16) && is_inside(&ranges, 0x100f, 1));
        for (address, bytes) in [(0xfff, 1), (0x1000, 17), (0x1010, 1), (u64::MAX, 2)] {
            assert!(!is_inside(&ranges, address, bytes), "{address:#x}, {bytes}");
        }
        assert!(ranges.remove(Address(0x1001)).is_err());
        ranges.remove(Address(0x1000)).expect("a range");
        assert!(ranges.remove(Address(0x1000)).is_err() && !is_inside(&ranges, 0x1000, 1));
    }
}
