//! Memory that is all the device's own, or the host's where it was given some.

use super::access::{Memory, Region, RegionMut, Window, WindowAccess};
use super::aligned::AlignedBytes;
use super::bytes::{Bytes, HostBytes, LARGE};
use super::sparse::SparseBytes;
use flipwave_device::{Address, DeviceError};
use std::ops::Range;
use std::sync::Arc;
use std::{iter, mem, ptr};

/// An address space of our own. Pages are 4 KiB, as on hardware: what lies between the end of
/// an allocation and the end of its last page is mapped and zero. Allocations start on 2 MiB
/// boundaries, so that unmapped memory lies between them.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// Sorted by base.
    allocations: Vec<Allocation>,
    /// Index of the allocation that was used last.
    last: usize,
    /// Changes whenever bytes are no more where they were.
    generation: u64,
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
    /// Whether the same bytes are there, which is quickly seen of those that are shared.
    fn is_same(&self, other: &Content) -> bool {
        self.len() == other.len()
            && self.beside(other).all(|(own, other)| ptr::eq(own, other) || own == other)
    }

    /// Bytes of the host that it takes beside another one, with which it shares what neither has written.
    fn host_bytes_beside(&self, other: &Content) -> u64 {
        let written = self.beside(other).filter(|(own, other)| !ptr::eq(*own, *other));
        let chunks = match self {
            Content::Whole(_) => 0,
            Content::Sparse(bytes) => bytes.host_bytes_of_chunks(),
        };
        chunks + written.map(|(own, _)| own.len() as u64).sum::<u64>()
    }

    /// The bytes of two as long as each other, in pieces that lie together in both; not what are zeros to the
    /// end of both.
    fn beside<'a>(&'a self, other: &'a Content) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let (mut at, end) = (0, self.end().max(other.end()));
        iter::from_fn(move || {
            let [own, other] = (at < end).then(|| [self, other].map(|all| all.from(at)))?;
            let count = own.len().min(other.len());
            at += count as u64;
            Some((&own[..count], &other[..count]))
        })
    }

    /// From where on there are nothing but zeros.
    fn end(&self) -> u64 {
        match self {
            Content::Whole(bytes) => bytes.len() as u64,
            Content::Sparse(bytes) => bytes.end(),
        }
    }

    /// The bytes from an offset on that lie together.
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
        if self.moves_when_written(offset) {
            self.make_room_at(offset);
        }
        match &mut self.content {
            Content::Whole(bytes) => {
                let is_shared = bytes.is_host();
                RegionMut { base: self.base, bytes: bytes.own(), is_shared }
            }
            Content::Sparse(bytes) => bytes.writable(self.base, offset),
        }
    }

    /// Has the bytes around an offset, which are to be written, copied in parts or as a whole.
    #[cold]
    fn make_room_at(&mut self, offset: u64) {
        match &mut self.content {
            // Where code begins and ends, regions of all bytes are counted on.
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

    /// Whether the bytes around an offset will be elsewhere when they are written.
    #[inline(always)]
    fn moves_when_written(&self, offset: u64) -> bool {
        match &self.content {
            Content::Whole(bytes) => bytes.is_shared(),
            Content::Sparse(bytes) => bytes.moves_when_written(offset),
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
        let RegionMut { base, bytes, is_shared } = self.own(offset);
        let base = base + part.start as u64;
        Some(RegionMut { base, bytes: bytes.get_mut(part)?, is_shared })
    }
}

/// Zeroed bytes, whole pages of them.
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
    /// Lowest address handed out; far from zero, as on hardware.
    pub const START: u64 = 0x7f00_0000_0000;
    /// End of the addresses handed out.
    pub const END: u64 = 0x7fff_0000_0000;
    pub(super) const PAGE: u64 = 4096;
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
    /// of the host's: for pieces of so many bytes, which are used by themselves.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub fn reserve(&mut self, size: u64, piece: u64) -> Result<Address, DeviceError> {
        let mapped = size.max(1).next_multiple_of(AddressSpace::PAGE);
        let bytes = SparseBytes::of_pieces(mapped, piece);
        self.add(Content::Sparse(bytes), size)
    }

    /// Adds an allocation at the lowest free place.
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
        self.generation += 1;
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

    /// Which of so many bytes from an address on may be others in another space, by their offsets from there:
    /// those that the two do not [share](AddressSpace::share), where both have the same allocation, else all.
    pub fn unshared_with(
        &self,
        other: &AddressSpace,
        start: Address,
        bytes: u64,
    ) -> Vec<Range<u64>> {
        let [own, other] = [self, other].map(|space| {
            let after = space.allocations.partition_point(|own| own.base <= start.0);
            space.allocations[..after].last()
        });
        let is_same = |(own, other): &(&Allocation, &Allocation)| {
            let is_host = matches!(&own.content, Content::Whole(bytes) if bytes.is_host());
            let (base, length) = (own.base, own.content.len());
            let end = start.0.checked_add(bytes);
            (base, length) == (other.base, other.content.len())
                && !is_host
                && end.is_some_and(|end| end <= base + length)
        };
        let Some((own, other)) = own.zip(other).filter(is_same) else {
            return iter::once(0..bytes).collect();
        };
        let (first, mut at) = (start.0 - own.base, 0);
        let pieces = own.content.beside(&other.content).filter_map(|(own, other)| {
            let piece = at..at + own.len() as u64;
            at = piece.end;
            let part = piece.start.max(first)..piece.end.min(first + bytes);
            let is_in = part.start < part.end && !ptr::eq(own, other);
            is_in.then(|| part.start - first..part.end - first)
        });
        pieces.collect()
    }

    /// Lets clones from now on share the memory that neither of them writes.
    pub fn share(&mut self) {
        self.generation += 1;
        for allocation in &mut self.allocations {
            match &mut allocation.content {
                Content::Whole(bytes) => bytes.share(),
                Content::Sparse(bytes) => bytes.share(),
            }
        }
    }

    /// Whether the same allocations hold the same bytes.
    pub fn is_same(&self, other: &AddressSpace) -> bool {
        let is_same = |(own, other): (&Allocation, &Allocation)| {
            (own.base, own.size, &own.code) == (other.base, other.size, &other.code)
                && own.content.is_same(&other.content)
        };
        self.allocations.len() == other.allocations.len()
            && self.allocations.iter().zip(&other.allocations).all(is_same)
    }

    /// Bytes of the host that it takes beside another one, with which it shares memory that neither has
    /// written since; about.
    pub fn host_bytes_beside(&self, other: &AddressSpace) -> u64 {
        let allocations = self.allocations.len() * size_of::<Allocation>();
        let own = |own: &Allocation| {
            let known = other.find(own.base).map(|index| &other.allocations[index]);
            match known {
                Some(other)
                    if other.base == own.base && other.content.len() == own.content.len() =>
                {
                    own.content.host_bytes_beside(&other.content)
                }
                _ => own.content.end(),
            }
        };
        allocations as u64 + self.allocations.iter().map(own).sum::<u64>()
    }

    /// Makes a range inside one allocation read-only to waves: a write there is a memory
    /// violation. It lies after the allocation's earlier such ranges.
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
        self.generation += 1;
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
        let moves = allocation.moves_when_written(offset);
        self.generation += u64::from(moves);
        let allocation = &mut self.allocations[self.last];
        if allocation.code.is_empty() {
            return Some(allocation.own(offset));
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
