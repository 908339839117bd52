//! Device memory: one interface, and its body for workloads whose memory is all our own.

use crate::atomic::Atomic;
use crate::bytes::{Bytes, HostBytes};
use crate::noting::WrittenByte;
use crate::sparse::SparseBytes;
use flipwave_device::{AccessKind, Address, DeviceError, FaultCause};
use flipwave_isa::Lane;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Memory as the executing waves see it.
///
/// Bodies hand out whole mapped regions, so that an instruction looks up one region and then
/// serves all lanes that fall into it. What is asked for is `bytes` bytes from `address` on, and
/// those are read or written as far as the region has them; whoever wants others as well looks
/// whether the region has them too, and asks for them if not. A body that must know each byte that
/// is accessed hands out no more than what is asked for.
pub trait Memory {
    /// A region to read that contains `address`.
    fn readable(&mut self, address: u64, bytes: usize) -> Option<Region<'_>>;

    /// A region to write that contains `address`; it is no code.
    fn writable(&mut self, address: u64, bytes: usize) -> Option<RegionMut<'_>>;

    /// What was asked for of the allocation whose pages contain `address`; nothing if that is not
    /// known.
    fn allocation(&self, _address: u64) -> Option<Range<u64>> {
        None
    }

    /// What was written since this was last asked; nothing if that is not noted.
    fn take_written(&mut self) -> Vec<WrittenByte> {
        Vec::new()
    }
}

/// Consecutive mapped bytes.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    /// Address of the first byte.
    pub base: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// Consecutive mapped bytes that may be written.
#[derive(Debug)]
pub struct RegionMut<'a> {
    /// Address of the first byte.
    pub base: u64,
    /// The bytes.
    pub bytes: &'a mut [u8],
}

impl<'a> Region<'a> {
    /// So many bytes at `address`, if all of them lie in this region.
    #[inline(always)]
    pub fn get(self, address: u64, length: usize) -> Option<&'a [u8]> {
        let start = usize::try_from(address.wrapping_sub(self.base)).ok()?;
        self.bytes.get(start..start.checked_add(length)?)
    }
}

impl<'a> RegionMut<'a> {
    /// The same.
    #[inline(always)]
    pub fn get(self, address: u64, length: usize) -> Option<&'a mut [u8]> {
        let start = usize::try_from(address.wrapping_sub(self.base)).ok()?;
        self.bytes.get_mut(start..start.checked_add(length)?)
    }
}

/// The fault of an access to memory that is not there.
pub fn violation(address: u64, access: AccessKind, lane: Option<Lane>) -> FaultCause {
    FaultCause::MemoryViolation { address: Address(address), access, lane }
}

/// Reads bytes at an address, which may lie in adjacent regions.
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
    let region = memory.readable(at, bytes.len());
    if let Some(found) = region.and_then(|region| region.get(at, bytes.len())) {
        bytes.copy_from_slice(found);
        return Ok(());
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        let at = at.wrapping_add(index as u64);
        *byte = memory
            .readable(at, 1)
            .and_then(|region| region.get(at, 1))
            .ok_or_else(|| violation(at, access, lane))?[0];
    }
    Ok(())
}

/// Writes bytes at an address, which may lie in adjacent regions.
///
/// # Errors
/// A memory violation at the first byte that is not mapped or is code; those before it are written.
pub fn write_bytes(
    memory: &mut dyn Memory,
    at: u64,
    bytes: &[u8],
    access: AccessKind,
    lane: Option<Lane>,
) -> Result<(), FaultCause> {
    let region = memory.writable(at, bytes.len());
    if let Some(place) = region.and_then(|region| region.get(at, bytes.len())) {
        place.copy_from_slice(bytes);
        return Ok(());
    }
    for (index, byte) in bytes.iter().enumerate() {
        let at = at.wrapping_add(index as u64);
        memory
            .writable(at, 1)
            .and_then(|region| region.get(at, 1))
            .ok_or_else(|| violation(at, access, lane))?
            .copy_from_slice(&[*byte]);
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
    // An access reads before it writes, and is noted as both.
    let denied = || violation(at, AccessKind::Atomic, lane);
    memory.readable(at, length).and_then(|region| region.get(at, length)).ok_or_else(denied)?;
    let region = memory.writable(at, length).ok_or_else(denied)?;
    let bytes = region.get(at, length).ok_or_else(denied)?;
    Ok(exchange(bytes, |old| atomic.apply(old, data, second)))
}

/// Replaces a word of 4 or 8 bytes by what `new` makes of it; gives the old one. Where the host or
/// other devices have the memory too, nobody sees anything between.
fn exchange(bytes: &mut [u8], new: impl Fn(u64) -> u64) -> u64 {
    macro_rules! exchange {
        ($atomic:ty, $word:ty) => {{
            let pointer = bytes.as_mut_ptr().cast::<$word>();
            if bytes.len() == size_of::<$word>() && pointer.is_aligned() {
                // SAFETY: the word is aligned, and borrowed mutably for this call.
                let word = unsafe { <$atomic>::from_ptr(pointer) };
                let mut old = word.load(Ordering::SeqCst);
                loop {
                    let wanted = new(<$word>::from_le(old).into()) as $word;
                    match word.compare_exchange(
                        old,
                        wanted.to_le(),
                        Ordering::SeqCst,
                        Ordering::SeqCst,
                    ) {
                        Ok(_) => return <$word>::from_le(old).into(),
                        Err(other) => old = other,
                    }
                }
            }
        }};
    }
    exchange!(AtomicU32, u32);
    exchange!(AtomicU64, u64);
    // Memory that no device shares may begin anywhere on the host.
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let old = u64::from_le_bytes(word);
    bytes.copy_from_slice(&new(old).to_le_bytes()[..bytes.len()]);
    old
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
    content: Content,
    /// As asked for.
    size: u64,
    /// Offsets of code, ascending.
    code: Vec<Range<usize>>,
}

/// The bytes of an allocation.
#[derive(Clone, Debug)]
enum Content {
    Whole(Bytes),
    Sparse(SparseBytes),
}

impl Content {
    fn len(&self) -> u64 {
        match self {
            Content::Whole(bytes) => bytes.len() as u64,
            Content::Sparse(bytes) => bytes.len(),
        }
    }
}

impl Allocation {
    /// The bytes around an offset.
    #[inline(always)]
    fn readable(&self, offset: u64) -> Region<'_> {
        match &self.content {
            Content::Whole(bytes) => Region { base: self.base, bytes },
            Content::Sparse(bytes) => bytes.readable(self.base, offset),
        }
    }

    /// The bytes around an offset, code or not.
    #[inline(always)]
    fn own(&mut self, offset: u64) -> RegionMut<'_> {
        match &mut self.content {
            Content::Whole(bytes) => RegionMut { base: self.base, bytes: bytes.own() },
            Content::Sparse(bytes) => bytes.writable(self.base, offset),
        }
    }

    /// Copies bytes out from an offset on, all of which are there.
    fn copy_out(&self, start: u64, bytes: &mut [u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let at = start + done as u64;
            let region = self.readable(at);
            let content = &region.bytes[(self.base + at - region.base) as usize..];
            let count = content.len().min(bytes.len() - done);
            bytes[done..done + count].copy_from_slice(&content[..count]);
            done += count;
        }
    }

    /// Copies bytes in from an offset on, to where there is room for all; over code, too.
    fn copy_in(&mut self, start: u64, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = start + (bytes.len() - rest.len()) as u64;
            let first = self.base + at;
            let region = self.own(at);
            let place = &mut region.bytes[(first - region.base) as usize..];
            let (now, later) = rest.split_at(rest.len().min(place.len()));
            place[..now.len()].copy_from_slice(now);
            rest = later;
        }
    }

    /// The bytes around an offset that waves may write, where there is code.
    fn writable(&mut self, offset: u64) -> Option<RegionMut<'_>> {
        let mut part = 0..self.content.len() as usize;
        for code in &self.code {
            if offset < code.start as u64 {
                part.end = code.start;
                break;
            }
            if offset < code.end as u64 {
                return None;
            }
            part.start = code.end;
        }
        let RegionMut { base, bytes } = self.own(offset);
        Some(RegionMut { base: base + part.start as u64, bytes: bytes.get_mut(part)? })
    }
}

/// Zeroed bytes, whole pages of them.
fn zeroed(size: u64) -> Result<Vec<u8>, DeviceError> {
    let refuse = |reason: &str| DeviceError::OutOfMemory { bytes: size, reason: reason.into() };
    if size > AddressSpace::LARGEST {
        return Err(refuse("more than 64 GiB in one allocation"));
    }
    let mapped = size.max(1).next_multiple_of(AddressSpace::PAGE);
    let length = usize::try_from(mapped).map_err(|_| refuse("more than the host can map"))?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| refuse("the host has no memory left"))?;
    bytes.resize(length, 0);
    Ok(bytes)
}

impl AddressSpace {
    /// Lowest address handed out; far from zero, as on hardware.
    pub const START: u64 = 0x7f00_0000_0000;
    /// End of the addresses handed out.
    pub const END: u64 = 0x7fff_0000_0000;
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
        let content = Content::Whole(Bytes::Own(zeroed(size)?));
        self.add(content, size)
    }

    /// Reserves zeroed memory like [`AddressSpace::allocate`], of which only what is written takes any
    /// of the host's.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub fn reserve(&mut self, size: u64) -> Result<Address, DeviceError> {
        let bytes = SparseBytes::new(size.max(1).next_multiple_of(AddressSpace::PAGE));
        self.add(Content::Sparse(bytes), size)
    }

    /// Adds an allocation at the lowest free place.
    fn add(&mut self, content: Content, size: u64) -> Result<Address, DeviceError> {
        let mapped = content.len();
        let mut base = AddressSpace::START;
        let mut index = 0;
        for (position, allocation) in self.allocations.iter().enumerate() {
            if base + mapped < allocation.base {
                break;
            }
            let behind = allocation.base + allocation.content.len() + 1;
            base = base.max(behind.next_multiple_of(AddressSpace::SPACING));
            index = position + 1;
        }
        if base + mapped > AddressSpace::END {
            let reason = "the address space is full".into();
            return Err(DeviceError::OutOfMemory { bytes: size, reason });
        }
        self.allocations.insert(index, Allocation { base, content, size, code: Vec::new() });
        Ok(Address(base))
    }

    /// Adds memory that the host has at address `host`. Clones have the same memory.
    ///
    /// # Errors
    /// [`DeviceError::Occupied`].
    ///
    /// # Safety
    /// As many bytes are mapped there, readable and writable, until the range is freed here and in
    /// all clones. The host may access them at the same time.
    pub unsafe fn map_host(&mut self, range: Range<Address>, host: u64) -> Result<(), DeviceError> {
        let (address, bytes) = (range.start, range.end.0.saturating_sub(range.start.0));
        let refuse = DeviceError::Occupied { address, bytes };
        // SAFETY: promised by the caller.
        let own = unsafe { HostBytes::new(host..host.saturating_add(bytes)) };
        self.insert(address, Bytes::Host(own.ok_or(refuse)?), bytes)
    }

    /// Reserves zeroed memory at an address, in whole pages.
    ///
    /// # Errors
    /// [`DeviceError::Occupied`], [`DeviceError::OutOfMemory`].
    pub fn allocate_at(&mut self, address: Address, size: u64) -> Result<(), DeviceError> {
        let bytes = Bytes::Own(zeroed(size)?);
        self.insert(address, bytes, size)
    }

    fn insert(&mut self, address: Address, bytes: Bytes, size: u64) -> Result<(), DeviceError> {
        let base = address.0;
        let index = self.allocations.partition_point(|own| own.base <= base);
        let end = base.checked_add(bytes.len() as u64);
        let is_free = index.checked_sub(1).is_none_or(|before| {
            let before = &self.allocations[before];
            before.base + before.content.len() <= base
        }) && self.allocations.get(index).is_none_or(|next| end <= Some(next.base));
        if !is_free || end.is_none() || bytes.is_empty() {
            return Err(DeviceError::Occupied { address, bytes: size });
        }
        let content = Content::Whole(bytes);
        self.allocations.insert(index, Allocation { base, content, size, code: Vec::new() });
        self.last = 0;
        Ok(())
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

    /// Lets clones from now on share the memory that neither of them writes.
    pub fn share(&mut self) {
        for allocation in &mut self.allocations {
            match &mut allocation.content {
                Content::Whole(bytes) => bytes.share(),
                Content::Sparse(bytes) => bytes.share(),
            }
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
        self.allocations[index].copy_in(start, bytes);
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
        self.allocations[index].copy_out(start, bytes);
        Ok(())
    }

    /// Copies bytes out as waves read them: whole pages, from one allocation after the other.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    pub fn read_pages(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let size = bytes.len() as u64;
        let error = DeviceError::NotAllocated { operation: "read", address, bytes: size };
        let pieces = self.pieces(address, size).ok_or(error)?;
        let mut rest = bytes;
        for (index, range) in pieces {
            let (now, later) = rest.split_at_mut((range.end - range.start) as usize);
            self.allocations[index].copy_out(range.start, now);
            rest = later;
        }
        Ok(())
    }

    /// Copies bytes in as waves write them: whole pages, to one allocation after the other; code
    /// too.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`], and nothing is written.
    pub fn write_pages(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        let size = bytes.len() as u64;
        let error = DeviceError::NotAllocated { operation: "write", address, bytes: size };
        let mut rest = bytes;
        for (index, range) in self.pieces(address, size).ok_or(error)? {
            let (now, later) = rest.split_at((range.end - range.start) as usize);
            self.allocations[index].copy_in(range.start, now);
            rest = later;
        }
        Ok(())
    }

    /// Allocations and offsets that together are a range; nothing if not all of it is mapped.
    fn pieces(&self, address: Address, size: u64) -> Option<Vec<(usize, Range<u64>)>> {
        let end = address.0.checked_add(size)?;
        let (mut pieces, mut at) = (Vec::new(), address.0);
        while at < end {
            let index = self.find(at)?;
            let Allocation { base, content, .. } = &self.allocations[index];
            let last = end.min(base + content.len());
            pieces.push((index, at - base..last - base));
            at = last;
        }
        Some(pieces)
    }

    /// Allocation and offset of a range that lies inside what was asked for.
    fn locate(&self, address: Address, length: usize) -> Option<(usize, u64)> {
        let index = self.find(address.0)?;
        let allocation = &self.allocations[index];
        let start = address.0 - allocation.base;
        let end = start.checked_add(length as u64)?;
        (end <= allocation.size).then_some((index, start))
    }

    /// The allocation whose pages contain `address`.
    #[inline]
    fn find(&self, address: u64) -> Option<usize> {
        let after = self.allocations.partition_point(|a| a.base <= address);
        let index = after.checked_sub(1)?;
        let allocation = &self.allocations[index];
        (address - allocation.base < allocation.content.len()).then_some(index)
    }

    /// The same, looked for first where it was the last time.
    #[inline(always)]
    fn allocation_around(&mut self, address: u64) -> Option<&mut Allocation> {
        let hit = self.allocations.get(self.last).is_some_and(|allocation| {
            address.wrapping_sub(allocation.base) < allocation.content.len()
        });
        if !hit {
            self.last = self.find(address)?;
        }
        self.allocations.get_mut(self.last)
    }
}

impl Memory for AddressSpace {
    fn allocation(&self, address: u64) -> Option<Range<u64>> {
        let Allocation { base, size, .. } = self.allocations[self.find(address)?];
        Some(base..base + size)
    }

    #[inline]
    fn readable(&mut self, address: u64, _: usize) -> Option<Region<'_>> {
        let allocation = self.allocation_around(address)?;
        Some(allocation.readable(address - allocation.base))
    }

    #[inline]
    fn writable(&mut self, address: u64, _: usize) -> Option<RegionMut<'_>> {
        let allocation = self.allocation_around(address)?;
        let offset = address - allocation.base;
        if allocation.code.is_empty() {
            return Some(allocation.own(offset));
        }
        allocation.writable(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_past_the_last_page_finds_no_region() {
        let mut space = AddressSpace::default();
        let address = space.allocate(100).unwrap();
        for (at, is_mapped) in
            [(address.0 + 4095, true), (address.0 + 4096, false), (address.0 - 1, false)]
        {
            assert_eq!(space.readable(at, 1).is_some(), is_mapped, "{at:#x}");
            assert_eq!(space.writable(at, 1).is_some(), is_mapped, "{at:#x}");
        }
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
    fn what_waves_reach_is_whole_pages_and_adjacent_allocations() {
        let mut space = AddressSpace::default();
        let at = |offset| Address(AddressSpace::START + offset);
        space.allocate_at(at(0), 100).unwrap();
        space.allocate_at(at(4096), 50).unwrap();
        space.write_pages(at(4000), &[7; 200]).unwrap();
        let mut found = [0; 202];
        space.read_pages(at(3999), &mut found).unwrap();
        assert_eq!((found[0], &found[1..201], found[201]), (0, &[7; 200][..], 0));
        assert!(space.read(at(4000), &mut [0]).is_err(), "not what the host asked for");
        let before = space.clone();
        assert!(space.write_pages(at(8190), &[9; 3]).is_err(), "beyond the last page");
        assert!(space.read_pages(at(8190), &mut [0; 3]).is_err());
        assert!(space.read_pages(Address(u64::MAX), &mut [0; 2]).is_err());
        let mut last = [1; 2];
        space.read_pages(at(8190), &mut last).unwrap();
        assert_eq!(last, [0; 2], "{before:?} is not changed in part");
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
        let mut write = |offset: u64, bytes: &[u8]| {
            write_bytes(&mut space, code.0 + offset, bytes, AccessKind::Write, None)
        };
        let refused = |offset| Err(violation(code.0 + offset, AccessKind::Write, None));
        for offset in 0..64 {
            let is_code = (4..8).contains(&offset) || (16..20).contains(&offset);
            assert_eq!(write(offset, &[7]), if is_code { refused(offset) } else { Ok(()) });
        }
        // A write that is code in part ends at the first byte of it.
        assert_eq!(write(3, &[1, 1]), refused(4));
        assert_eq!(write(7, &[1, 1]), refused(7));
        let mut bytes = [0; 9];
        read_bytes(&mut space, code.0, &mut bytes, AccessKind::Read, None).unwrap();
        assert_eq!(bytes, [7, 7, 7, 1, 0, 0, 0, 0, 7]);
    }
}
