//! Device memory: allocations at ascending addresses.

use flipwave_device::{Address, DeviceError};
use std::collections::BTreeMap;
use std::ops::Range;

/// Address of the first allocation, and the distance of allocations to each other.
const START: u64 = 1 << 16;

/// Allocations by address.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Memory(BTreeMap<u64, Vec<u8>>);

impl Memory {
    /// Allocates zeroed memory.
    pub fn allocate(&mut self, bytes: u64) -> Address {
        let end = self.0.last_key_value().map_or(0, |(start, all)| start + all.len() as u64);
        let start = (end + START).next_multiple_of(START);
        self.0.insert(start, vec![0; bytes as usize]);
        Address(start)
    }

    /// Allocates zeroed memory at an address.
    pub fn allocate_at(&mut self, address: Address, bytes: u64) -> Result<(), DeviceError> {
        let end = address.0 + bytes;
        if self
            .0
            .range(..end)
            .next_back()
            .is_some_and(|(start, all)| start + all.len() as u64 > address.0)
        {
            return Err(DeviceError::Occupied { address, bytes });
        }
        self.0.insert(address.0, vec![0; bytes as usize]);
        Ok(())
    }

    /// Frees an allocation.
    pub fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        let missing = DeviceError::NotAllocated { operation: "free", address, bytes: 0 };
        self.0.remove(&address.0).map(drop).ok_or(missing)
    }

    /// All allocations.
    pub fn allocations(&self) -> Vec<(Address, u64)> {
        self.0.iter().map(|(start, all)| (Address(*start), all.len() as u64)).collect()
    }

    /// The allocation that contains an address.
    pub fn around(&self, address: Address) -> Option<Range<Address>> {
        let (start, all) = self.0.range(..=address.0).next_back()?;
        let end = start + all.len() as u64;
        (address.0 < end).then_some(Address(*start)..Address(end))
    }

    /// The bytes of a range.
    pub fn get(&self, address: Address, bytes: usize) -> Option<&[u8]> {
        let (start, all) = self.0.range(..=address.0).next_back()?;
        let offset = (address.0 - start) as usize;
        all.get(offset..offset.checked_add(bytes)?)
    }

    /// The bytes of a range.
    pub fn get_mut(&mut self, address: Address, bytes: usize) -> Option<&mut [u8]> {
        let (start, all) = self.0.range_mut(..=address.0).next_back()?;
        let offset = (address.0 - start) as usize;
        all.get_mut(offset..offset.checked_add(bytes)?)
    }

    /// A word.
    pub fn word(&self, address: Address) -> Option<u32> {
        self.get(address, 4)?.first_chunk().map(|word| u32::from_le_bytes(*word))
    }
}
