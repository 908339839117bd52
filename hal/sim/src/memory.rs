//! Device memory: one interface, and its body for workloads whose memory is all our own.

use crate::atomic::Atomic;
use flipwave_device::{AccessKind, Address, DeviceError, FaultCause};
use flipwave_isa::Lane;
use std::ops::Range;

/// Memory as the executing waves see it.
///
/// Bodies hand out whole mapped regions, so that an instruction looks up one region and then
/// serves all lanes that fall into it.
pub trait Memory {
    /// The mapped region that contains `address`.
    fn region(&mut self, address: u64) -> Option<Region<'_>>;

    /// What was asked for of the allocation whose pages contain `address`; nothing if that is not
    /// known.
    fn allocation(&self, _address: u64) -> Option<Range<u64>> {
        None
    }
}

/// Consecutive mapped bytes.
#[derive(Debug)]
pub struct Region<'a> {
    /// Address of the first byte.
    pub base: u64,
    /// The bytes.
    pub bytes: &'a mut [u8],
    /// Whether waves may write them: they are no code.
    pub writable: bool,
}

impl Region<'_> {
    /// `N` bytes at `address`, if all of them lie in this region.
    #[inline(always)]
    pub fn read<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let start = usize::try_from(address.wrapping_sub(self.base)).ok()?;
        self.bytes.get(start..start.checked_add(N)?)?.try_into().ok()
    }

    /// Writes at `address`, if all the bytes lie in this region and it may be written.
    #[inline(always)]
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Option<()> {
        let start = usize::try_from(address.wrapping_sub(self.base)).ok()?;
        let place = self.bytes.get_mut(start..start.checked_add(bytes.len())?)?;
        self.writable.then(|| place.copy_from_slice(bytes))?;
        Some(())
    }
}

/// The fault of an access to memory that is not there.
pub fn violation(address: u64, access: AccessKind, lane: Option<Lane>) -> FaultCause {
    FaultCause::MemoryViolation { address: Address(address), access, lane }
}

/// Up to 16 bytes at an address, which may lie in adjacent regions.
///
/// # Errors
/// A memory violation at the first byte that is not mapped.
pub fn read_bytes(
    memory: &mut dyn Memory,
    at: u64,
    bytes: &mut [u8],
    access: AccessKind,
    lane: Option<Lane>,
) -> Result<(), FaultCause> {
    for (index, byte) in bytes.iter_mut().enumerate() {
        let at = at.wrapping_add(index as u64);
        *byte = memory
            .region(at)
            .and_then(|region| region.read::<1>(at))
            .ok_or_else(|| violation(at, access, lane))?[0];
    }
    Ok(())
}

/// Reads, modifies and writes one memory word; gives the old value. The operands are the data and
/// what is compared with or cleared.
///
/// # Errors
/// An address that is misaligned or not mapped.
pub fn modify(
    memory: &mut dyn Memory,
    at: u64,
    lane: Option<Lane>,
    atomic: Atomic,
    [data, second]: [u64; 2],
) -> Result<u64, FaultCause> {
    let length = usize::from(atomic.bytes);
    if !at.is_multiple_of(length as u64) {
        let alignment = u32::from(atomic.bytes);
        return Err(FaultCause::Misaligned { address: Address(at), alignment, lane });
    }
    let mut bytes = [0; 8];
    read_bytes(memory, at, &mut bytes[..length], AccessKind::Atomic, lane)?;
    let old = u64::from_le_bytes(bytes);
    let new = atomic.apply(old, data, second).to_le_bytes();
    memory
        .region(at)
        .and_then(|mut region| region.write(at, &new[..length]))
        .ok_or_else(|| violation(at, AccessKind::Atomic, lane))?;
    Ok(old)
}

/// An address space of our own. Pages are 4 KiB, as on hardware: what lies between the end of
/// an allocation and the end of its last page is mapped and zero. Allocations start on 2 MiB
/// boundaries, so that unmapped memory lies between them.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// Sorted by base.
    allocations: Vec<Allocation>,
    /// Index of the allocation that was used last.
    last: usize,
}

#[derive(Clone, Debug)]
struct Allocation {
    base: u64,
    /// Whole pages.
    bytes: Vec<u8>,
    /// As asked for.
    size: u64,
    /// Offsets of code, ascending.
    code: Vec<Range<usize>>,
}

impl Allocation {
    /// The bytes around an offset that are all code, or all none.
    fn region(&mut self, offset: u64) -> Option<Region<'_>> {
        let (mut part, mut writable) = (0..self.bytes.len(), true);
        for code in &self.code {
            if offset < code.start as u64 {
                part.end = code.start;
                break;
            }
            if offset < code.end as u64 {
                (part, writable) = (code.clone(), false);
                break;
            }
            part.start = code.end;
        }
        let base = self.base + part.start as u64;
        Some(Region { base, bytes: self.bytes.get_mut(part)?, writable })
    }
}

impl AddressSpace {
    /// Lowest address handed out; far from zero, as on hardware.
    pub const START: u64 = 0x7f00_0000_0000;
    const END: u64 = 0x7fff_0000_0000;
    const PAGE: u64 = 4096;
    const SPACING: u64 = 2 << 20;
    /// Most bytes one allocation may have.
    const LARGEST: u64 = 64 << 30;

    /// What is allocated: address and bytes asked for, by ascending address.
    pub fn allocations(&self) -> impl Iterator<Item = (Address, u64)> {
        self.allocations.iter().map(|own| (Address(own.base), own.size))
    }

    /// Reserves zeroed memory at the lowest free place.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub fn allocate(&mut self, size: u64) -> Result<Address, DeviceError> {
        let refuse = |reason: &str| DeviceError::OutOfMemory { bytes: size, reason: reason.into() };
        if size > AddressSpace::LARGEST {
            return Err(refuse("more than 64 GiB in one allocation"));
        }
        let mapped = size.max(1).next_multiple_of(AddressSpace::PAGE);
        let mut base = AddressSpace::START;
        let mut index = 0;
        for (position, allocation) in self.allocations.iter().enumerate() {
            if base + mapped < allocation.base {
                break;
            }
            base = (allocation.base + allocation.bytes.len() as u64 + 1)
                .next_multiple_of(AddressSpace::SPACING);
            index = position + 1;
        }
        if base + mapped > AddressSpace::END {
            return Err(refuse("the address space is full"));
        }
        let mut bytes = Vec::new();
        let length = usize::try_from(mapped).map_err(|_| refuse("more than the host can map"))?;
        bytes.try_reserve_exact(length).map_err(|_| refuse("the host has no memory left"))?;
        bytes.resize(length, 0);
        self.allocations.insert(index, Allocation { base, bytes, size, code: Vec::new() });
        Ok(Address(base))
    }

    /// Gives an allocation back.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    pub fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        match self.allocations.binary_search_by_key(&address.0, |a| a.base) {
            Ok(index) => {
                self.allocations.remove(index);
                self.last = 0;
                Ok(())
            }
            Err(_) => Err(DeviceError::NotAllocated { operation: "free", address, bytes: 0 }),
        }
    }

    /// Makes a range inside one allocation read-only to waves: a write there is a memory
    /// violation. It lies behind the allocation's earlier such ranges.
    pub fn protect(&mut self, range: Range<Address>) {
        if let Some(index) = self.find(range.start.0) {
            let Allocation { base, code, .. } = &mut self.allocations[index];
            code.push((range.start.0 - *base) as usize..(range.end.0 - *base) as usize);
        }
    }

    /// Copies bytes in, from the host's side, which may write code.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    pub fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        let error =
            DeviceError::NotAllocated { operation: "write", address, bytes: bytes.len() as u64 };
        let Some((index, start)) = self.locate(address, bytes.len()) else { return Err(error) };
        self.allocations[index].bytes[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// Copies bytes out.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    pub fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let length = bytes.len();
        let Some((index, start)) = self.locate(address, length) else {
            let operation = "read";
            return Err(DeviceError::NotAllocated { operation, address, bytes: length as u64 });
        };
        bytes.copy_from_slice(&self.allocations[index].bytes[start..start + length]);
        Ok(())
    }

    /// Allocation and offset of a range that lies inside what was asked for.
    fn locate(&self, address: Address, length: usize) -> Option<(usize, usize)> {
        let index = self.find(address.0)?;
        let allocation = &self.allocations[index];
        let start = address.0 - allocation.base;
        let end = start.checked_add(length as u64)?;
        (end <= allocation.size).then_some((index, start as usize))
    }

    /// The allocation whose pages contain `address`.
    #[inline]
    fn find(&self, address: u64) -> Option<usize> {
        let after = self.allocations.partition_point(|a| a.base <= address);
        let index = after.checked_sub(1)?;
        let allocation = &self.allocations[index];
        (address - allocation.base < allocation.bytes.len() as u64).then_some(index)
    }
}

impl Memory for AddressSpace {
    fn allocation(&self, address: u64) -> Option<Range<u64>> {
        let Allocation { base, size, .. } = self.allocations[self.find(address)?];
        Some(base..base + size)
    }

    #[inline]
    fn region(&mut self, address: u64) -> Option<Region<'_>> {
        let hit = self.allocations.get(self.last).is_some_and(|allocation| {
            address.wrapping_sub(allocation.base) < allocation.bytes.len() as u64
        });
        if !hit {
            self.last = self.find(address)?;
        }
        let allocation = self.allocations.get_mut(self.last)?;
        if allocation.code.is_empty() {
            return Some(Region {
                base: allocation.base,
                bytes: &mut allocation.bytes,
                writable: true,
            });
        }
        allocation.region(address - allocation.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_past_the_last_page_finds_no_region() {
        let mut space = AddressSpace::default();
        let address = space.allocate(100).unwrap();
        assert!(space.region(address.0 + 4095).is_some());
        assert!(space.region(address.0 + 4096).is_none());
        assert!(space.region(address.0 - 1).is_none());
    }

    #[test]
    fn the_host_reaches_only_what_it_asked_for() {
        let mut space = AddressSpace::default();
        let address = space.allocate(100).unwrap();
        assert!(space.write(address, &[1; 100]).is_ok());
        assert!(space.write(address, &[1; 101]).is_err());
        assert!(space.read(Address(address.0 + 99), &mut [0; 2]).is_err());
    }

    #[test]
    fn freed_places_are_used_again_so_that_addresses_do_not_depend_on_history() {
        let mut space = AddressSpace::default();
        let first = space.allocate(10).unwrap();
        let second = space.allocate(10).unwrap();
        assert!(first < second);
        space.free(first).unwrap();
        assert_eq!(space.allocate(10).unwrap(), first);
    }

    #[test]
    fn waves_cannot_write_code() {
        let mut space = AddressSpace::default();
        let code = space.allocate(64).unwrap();
        space.protect(Address(code.0 + 4)..Address(code.0 + 8));
        space.protect(Address(code.0 + 16)..Address(code.0 + 20));
        for offset in 0..64 {
            let is_code = (4..8).contains(&offset) || (16..20).contains(&offset);
            let mut region = space.region(code.0 + offset).unwrap();
            assert_eq!(region.read::<1>(code.0 + offset), Some([0]));
            assert_eq!(region.write(code.0 + offset, &[0]).is_none(), is_code, "{offset}");
        }
        // A write that is code in part is one to code.
        assert_eq!(space.region(code.0 + 3).unwrap().write(code.0 + 3, &[1, 1]), None);
        assert_eq!(space.region(code.0 + 7).unwrap().write(code.0 + 7, &[1, 1]), None);
    }
}
