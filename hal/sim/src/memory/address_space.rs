//! Device memory, owned by the simulator or mapped from the host.

use super::access::{Memory, Region, RegionMut, Window, WindowAccess};
use super::aligned::AlignedBytes;
use super::bytes::{Bytes, HostBytes, LARGE};
use super::sparse::SparseBytes;
use flipwave_device::{Address, DeviceError};
use std::ops::Range;
use std::sync::Arc;
use std::{iter, mem, ptr};

/// A simulated address space. Pages are 4 KiB, as on hardware: the bytes between the end of an
/// allocation and the end of its last page are mapped and zero. Allocations start on 2 MiB
/// boundaries, so that unmapped memory lies between them.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// Sorted by base.
    allocations: Vec<Allocation>,
    /// Index of the last used allocation.
    last: usize,
    /// Changes whenever bytes move in host memory.
    generation: u64,
}

#[derive(Clone, Debug)]
struct Allocation {
    base: u64,
    /// Bytes of whole pages.
    content: Content,
    /// Requested size.
    size: u64,
    /// Offsets of code, ascending.
    code: Vec<Range<usize>>,
}

/// Bytes of an allocation.
#[derive(Clone, Debug)]
enum Content {
    Whole(Bytes),
    Sparse(SparseBytes),
}

impl Content {
    /// Returns `true` if the bytes are equal; shared bytes are recognised by their address.
    fn is_same(&self, other: &Content) -> bool {
        self.len() == other.len()
            && self.paired_pieces(other).all(|(ours, other)| ptr::eq(ours, other) || ours == other)
    }

    /// Host memory in bytes that this content takes in addition to `other`, with which it shares
    /// unwritten bytes.
    fn added_host_bytes(&self, other: &Content) -> u64 {
        let written = self.paired_pieces(other).filter(|(ours, other)| !ptr::eq(*ours, *other));
        let chunks = match self {
            Content::Whole(_) => 0,
            Content::Sparse(bytes) => bytes.host_bytes_of_chunks(),
        };
        chunks + written.map(|(ours, _)| ours.len() as u64).sum::<u64>()
    }

    /// Pairs of the corresponding pieces of two contents of equal length that are contiguous in
    /// both; excludes the zeros at the end of both.
    fn paired_pieces<'a>(
        &'a self,
        other: &'a Content,
    ) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let (mut at, end) = (0, self.end().max(other.end()));
        iter::from_fn(move || {
            let [ours, other] = (at < end).then(|| [self, other].map(|all| all.from(at)))?;
            let count = ours.len().min(other.len());
            at += count as u64;
            Some((&ours[..count], &other[..count]))
        })
    }

    /// Offset from which on all bytes are zero.
    fn end(&self) -> u64 {
        match self {
            Content::Whole(bytes) => bytes.len() as u64,
            Content::Sparse(bytes) => bytes.end(),
        }
    }

    /// Contiguous bytes at an offset.
    fn from(&self, offset: u64) -> &[u8] {
        match self {
            Content::Whole(bytes) => &bytes[offset as usize..],
            Content::Sparse(bytes) => {
                let region = bytes.readable(0, offset);
                &region.bytes[(offset - region.base) as usize..]
            }
        }
    }

    fn len(&self) -> u64 {
        match self {
            Content::Whole(bytes) => bytes.len() as u64,
            Content::Sparse(bytes) => bytes.len(),
        }
    }
}

impl Allocation {
    /// Bytes around an offset.
    #[inline(always)]
    fn readable(&self, offset: u64) -> Region<'_> {
        match &self.content {
            Content::Whole(bytes) => Region { base: self.base, bytes },
            Content::Sparse(bytes) => bytes.readable(self.base, offset),
        }
    }

    /// Bytes around an offset for writing, whether code or not.
    #[inline(always)]
    fn make_writable(&mut self, offset: u64) -> RegionMut<'_> {
        if self.moves_when_written(offset) {
            self.make_room_at(offset);
        }
        match &mut self.content {
            Content::Whole(bytes) => {
                let is_shared = bytes.is_host();
                RegionMut { base: self.base, bytes: bytes.make_writable(), is_shared }
            }
            Content::Sparse(bytes) => bytes.writable(self.base, offset),
        }
    }

    /// Copies shared bytes around an offset before they are written, in parts or as a whole.
    #[cold]
    fn make_room_at(&mut self, offset: u64) {
        match &mut self.content {
            // Bounds of code rely on regions of the whole content.
            Content::Whole(Bytes::Shared(shared))
                if shared.len() >= LARGE
                    && self.code.is_empty()
                    && Arc::strong_count(shared) > 1 =>
            {
                self.content = Content::Sparse(SparseBytes::over(mem::take(shared)));
            }
            Content::Sparse(bytes) if bytes.is_better_whole(offset) => {
                self.content = Content::Whole(Bytes::Own(bytes.to_whole()));
            }
            _ => {}
        }
    }

    /// Copies bytes out, starting at an offset; all must exist.
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

    /// Copies bytes to an offset; all must exist. May overwrite code.
    fn copy_in(&mut self, start: u64, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = start + (bytes.len() - rest.len()) as u64;
            let first = self.base + at;
            let region = self.make_writable(at);
            let place = &mut region.bytes[(first - region.base) as usize..];
            let (now, later) = rest.split_at(rest.len().min(place.len()));
            place[..now.len()].copy_from_slice(now);
            rest = later;
        }
    }

    /// Returns `true` if writing the bytes around an offset moves them in host memory.
    #[inline(always)]
    fn moves_when_written(&self, offset: u64) -> bool {
        match &self.content {
            Content::Whole(bytes) => bytes.is_shared(),
            Content::Sparse(bytes) => bytes.moves_when_written(offset),
        }
    }

    /// Bytes around an offset that waves may write, between ranges of code.
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
        let RegionMut { base, bytes, is_shared } = self.make_writable(offset);
        let base = base + part.start as u64;
        Some(RegionMut { base, bytes: bytes.get_mut(part)?, is_shared })
    }
}

/// Allocates zeroed bytes in whole pages.
fn zeroed(size: u64) -> Result<AlignedBytes, DeviceError> {
    let refuse = |reason: &str| DeviceError::OutOfMemory { bytes: size, reason: reason.into() };
    if size > AddressSpace::LARGEST {
        return Err(refuse("more than 64 GiB in one allocation"));
    }
    let mapped = size.max(1).next_multiple_of(AddressSpace::PAGE);
    let length = usize::try_from(mapped).map_err(|_| refuse("more than the host can map"))?;
    AlignedBytes::try_new(length).ok_or_else(|| refuse("the host has no memory left"))
}

impl AddressSpace {
    /// Lowest allocated address; far from zero, as on hardware.
    pub const START: u64 = 0x7f00_0000_0000;
    /// End of the allocated addresses.
    pub const END: u64 = 0x7fff_0000_0000;
    pub(super) const PAGE: u64 = 4096;
    const SPACING: u64 = 2 << 20;
    /// Maximum size of an allocation in bytes.
    const LARGEST: u64 = 64 << 30;

    /// Addresses and requested sizes of the allocations, by ascending address.
    pub fn allocations(&self) -> impl Iterator<Item = (Address, u64)> {
        self.allocations.iter().map(|allocation| (Address(allocation.base), allocation.size))
    }

    /// Allocates zeroed memory at the lowest free address.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub fn allocate(&mut self, size: u64) -> Result<Address, DeviceError> {
        let content = Content::Whole(Bytes::Own(zeroed(size)?));
        self.add(content, size)
    }

    /// Allocates zeroed memory like [`AddressSpace::allocate`], of which only written parts take
    /// host memory; `piece` is the size of the parts that are used separately.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub fn reserve(&mut self, size: u64, piece: u64) -> Result<Address, DeviceError> {
        let mapped = size.max(1).next_multiple_of(AddressSpace::PAGE);
        let bytes = SparseBytes::of_pieces(mapped, piece);
        self.add(Content::Sparse(bytes), size)
    }

    /// Adds an allocation at the lowest free address.
    fn add(&mut self, content: Content, size: u64) -> Result<Address, DeviceError> {
        self.generation += 1;
        let mapped = content.len();
        let mut base = AddressSpace::START;
        let mut index = 0;
        for (position, allocation) in self.allocations.iter().enumerate() {
            if base + mapped < allocation.base {
                break;
            }
            let after = allocation.base + allocation.content.len() + 1;
            base = base.max(after.next_multiple_of(AddressSpace::SPACING));
            index = position + 1;
        }
        if base + mapped > AddressSpace::END {
            let reason = "the address space is full".into();
            return Err(DeviceError::OutOfMemory { bytes: size, reason });
        }
        self.allocations.insert(index, Allocation { base, content, size, code: Vec::new() });
        Ok(Address(base))
    }

    /// Maps host memory at the host address `host`. Clones map the same memory.
    ///
    /// # Errors
    /// [`DeviceError::Occupied`].
    ///
    /// # Safety
    /// The bytes must be mapped, readable and writable, until the range is freed in this space and
    /// in all clones. The host may access them at the same time.
    pub unsafe fn map_host(&mut self, range: Range<Address>, host: u64) -> Result<(), DeviceError> {
        let (address, bytes) = (range.start, range.end.0.saturating_sub(range.start.0));
        let refuse = DeviceError::Occupied { address, bytes };
        // SAFETY: promised by the caller.
        let host_bytes = unsafe { HostBytes::new(host..host.saturating_add(bytes)) };
        self.insert(address, Bytes::Host(host_bytes.ok_or(refuse)?), bytes)
    }

    /// Allocates zeroed memory at an address, in whole pages.
    ///
    /// # Errors
    /// [`DeviceError::Occupied`], [`DeviceError::OutOfMemory`].
    pub fn allocate_at(&mut self, address: Address, size: u64) -> Result<(), DeviceError> {
        let bytes = Bytes::Own(zeroed(size)?);
        self.insert(address, bytes, size)
    }

    fn insert(&mut self, address: Address, bytes: Bytes, size: u64) -> Result<(), DeviceError> {
        self.generation += 1;
        let base = address.0;
        let index = self.allocations.partition_point(|allocation| allocation.base <= base);
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

    /// Frees an allocation.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    pub fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        self.generation += 1;
        match self.allocations.binary_search_by_key(&address.0, |a| a.base) {
            Ok(index) => {
                self.allocations.remove(index);
                self.last = 0;
                Ok(())
            }
            Err(_) => Err(DeviceError::NotAllocated { operation: "free", address, bytes: 0 }),
        }
    }

    /// Returns the parts of a range that may differ from another space, as offsets from the start
    /// of the range: those that the two spaces do not [share](AddressSpace::share) if both have the
    /// same allocation, otherwise the whole range.
    pub fn unshared_with(
        &self,
        other: &AddressSpace,
        start: Address,
        bytes: u64,
    ) -> Vec<Range<u64>> {
        let [ours, other] = [self, other].map(|space| {
            let after = space.allocations.partition_point(|allocation| allocation.base <= start.0);
            space.allocations[..after].last()
        });
        let is_same = |(ours, other): &(&Allocation, &Allocation)| {
            let is_host = matches!(&ours.content, Content::Whole(bytes) if bytes.is_host());
            let (base, length) = (ours.base, ours.content.len());
            let end = start.0.checked_add(bytes);
            (base, length) == (other.base, other.content.len())
                && !is_host
                && end.is_some_and(|end| end <= base + length)
        };
        let Some((ours, other)) = ours.zip(other).filter(is_same) else {
            return iter::once(0..bytes).collect();
        };
        let (first, mut at) = (start.0 - ours.base, 0);
        let pieces = ours.content.paired_pieces(&other.content).filter_map(|(ours, other)| {
            let piece = at..at + ours.len() as u64;
            at = piece.end;
            let part = piece.start.max(first)..piece.end.min(first + bytes);
            let is_in = part.start < part.end && !ptr::eq(ours, other);
            is_in.then(|| part.start - first..part.end - first)
        });
        pieces.collect()
    }

    /// Makes future clones share memory until either of them writes it.
    pub fn share(&mut self) {
        self.generation += 1;
        for allocation in &mut self.allocations {
            match &mut allocation.content {
                Content::Whole(bytes) => bytes.share(),
                Content::Sparse(bytes) => bytes.share(),
            }
        }
    }

    /// Returns `true` if both spaces have the same allocations and bytes.
    pub fn is_same(&self, other: &AddressSpace) -> bool {
        let is_same = |(ours, other): (&Allocation, &Allocation)| {
            (ours.base, ours.size, &ours.code) == (other.base, other.size, &other.code)
                && ours.content.is_same(&other.content)
        };
        self.allocations.len() == other.allocations.len()
            && self.allocations.iter().zip(&other.allocations).all(is_same)
    }

    /// Approximate host memory in bytes that this space takes in addition to `other`, with which it
    /// shares unwritten memory.
    pub fn added_host_bytes(&self, other: &AddressSpace) -> u64 {
        let allocations = self.allocations.len() * size_of::<Allocation>();
        let added_bytes = |ours: &Allocation| {
            let known = other.find(ours.base).map(|index| &other.allocations[index]);
            match known {
                Some(other)
                    if other.base == ours.base && other.content.len() == ours.content.len() =>
                {
                    ours.content.added_host_bytes(&other.content)
                }
                _ => ours.content.end(),
            }
        };
        allocations as u64 + self.allocations.iter().map(added_bytes).sum::<u64>()
    }

    /// Makes a range inside one allocation read-only to waves: writing it is a memory violation.
    /// The range must lie after the allocation's earlier protected ranges.
    pub fn protect(&mut self, range: Range<Address>) {
        if let Some(index) = self.find(range.start.0) {
            let Allocation { base, code, .. } = &mut self.allocations[index];
            code.push((range.start.0 - *base) as usize..(range.end.0 - *base) as usize);
        }
    }

    /// Copies bytes in from the host's side, which may write code.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    pub fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        let error =
            DeviceError::NotAllocated { operation: "write", address, bytes: bytes.len() as u64 };
        let Some((index, start)) = self.locate(address, bytes.len()) else { return Err(error) };
        self.generation += 1;
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

    /// Copies bytes out as waves read them: whole pages, possibly from several adjacent
    /// allocations.
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

    /// Copies bytes in as waves write them: whole pages, possibly to several adjacent allocations;
    /// may write code.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`]; nothing is written then.
    pub fn write_pages(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        let size = bytes.len() as u64;
        let error = DeviceError::NotAllocated { operation: "write", address, bytes: size };
        let mut rest = bytes;
        self.generation += 1;
        for (index, range) in self.pieces(address, size).ok_or(error)? {
            let (now, later) = rest.split_at((range.end - range.start) as usize);
            self.allocations[index].copy_in(range.start, now);
            rest = later;
        }
        Ok(())
    }

    /// Allocations and offsets that together cover a range; `None` if not all of it is mapped.
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

    /// Allocation and offset of a range that lies inside the requested size.
    fn locate(&self, address: Address, length: usize) -> Option<(usize, u64)> {
        let index = self.find(address.0)?;
        let allocation = &self.allocations[index];
        let start = address.0 - allocation.base;
        let end = start.checked_add(length as u64)?;
        (end <= allocation.size).then_some((index, start))
    }

    /// Index of the allocation whose pages contain `address`.
    #[inline]
    fn find(&self, address: u64) -> Option<usize> {
        let after = self.allocations.partition_point(|a| a.base <= address);
        let index = after.checked_sub(1)?;
        let allocation = &self.allocations[index];
        (address - allocation.base < allocation.content.len()).then_some(index)
    }

    /// The allocation whose pages contain `address`; tries the last used one first.
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
        let moves = allocation.moves_when_written(offset);
        self.generation += u64::from(moves);
        let allocation = &mut self.allocations[self.last];
        if allocation.code.is_empty() {
            return Some(allocation.make_writable(offset));
        }
        allocation.writable(offset)
    }

    fn window(&mut self, address: u64, access: WindowAccess) -> Option<Window> {
        let (base, bytes, length) = match access {
            WindowAccess::Read => {
                let Region { base, bytes } = self.readable(address, 1)?;
                (base, bytes.as_ptr().cast_mut(), bytes.len())
            }
            WindowAccess::Write => {
                let RegionMut { base, bytes, .. } = self.writable(address, 1)?;
                (base, bytes.as_mut_ptr(), bytes.len())
            }
        };
        Some(Window { base, length: length as u64, bytes, touched: ptr::null_mut() })
    }

    fn generation(&self) -> Option<u64> {
        Some(self.generation)
    }
}

#[cfg(test)]
mod tests;
