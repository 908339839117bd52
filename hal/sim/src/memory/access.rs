//! Memory as instructions access it.

use super::atomic::Atomic;
use super::lane_places::LanePlaces;
use super::touched::{PrivateNotes, TouchedRegion};
use flipwave_device::{AccessKind, Address, FaultCause};
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

    /// Like [`Memory::readable`], for lanes that report by [`Memory::note_read`] what they have read
    /// there: whoever must know each byte need not hand out one at a time.
    fn readable_by_lanes(&mut self, address: u64, bytes: usize) -> Option<Region<'_>> {
        self.readable(address, bytes)
    }

    /// Like [`Memory::writable`], for lanes that report by [`Memory::note_written`].
    fn writable_by_lanes(&mut self, address: u64, bytes: usize) -> Option<RegionMut<'_>> {
        self.writable(address, bytes)
    }

    /// Lanes have read from a region that [`Memory::readable_by_lanes`] handed out.
    fn note_read(&mut self, _places: &LanePlaces<'_>) {}

    /// Lanes have written to a region that [`Memory::writable_by_lanes`] handed out.
    fn note_written(&mut self, _places: &LanePlaces<'_>) {}

    /// Mapped bytes around `address` that are there as long as [`Memory::generation`] is the same; nothing
    /// where each access must be seen. Where [`Memory::notes_windows`] says so, what is accessed by it
    /// must be noted in [`Window::touched`].
    fn window(&mut self, _address: u64, _access: WindowAccess) -> Option<Window> {
        None
    }

    /// Such bytes of private memory, and where it is noted which of them are accessed.
    fn private_window(
        &mut self,
        address: u64,
        access: WindowAccess,
    ) -> Option<(Window, PrivateNotes)> {
        Some((self.window(address, access)?, PrivateNotes::NONE))
    }

    /// A number that is another one when what [`Memory::window`] gave is void; nothing if it gives
    /// nothing.
    fn generation(&self) -> Option<u64> {
        None
    }

    /// Whether what is accessed by windows must be noted.
    fn notes_windows(&self) -> bool {
        false
    }

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

/// What a window is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WindowAccess {
    /// Its bytes are read.
    Read,
    /// They are written.
    Write,
}

/// Consecutive mapped bytes by the host's address.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Window {
    /// Device address of the first byte.
    pub base: u64,
    /// How many.
    pub length: u64,
    /// Where the host has them.
    pub bytes: *mut u8,
    /// Where it is noted which of them are accessed; null where that is not done.
    pub touched: *mut TouchedRegion,
}

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
    /// Whether the host or other devices may access them at the same time.
    pub is_shared: bool,
}

impl<'a> Region<'a> {
    /// So many bytes at `address`, if all of them lie in this region.
    #[inline(always)]
    pub fn get(self, address: u64, length: usize) -> Option<&'a [u8]> {
        let start = usize::try_from(address.wrapping_sub(self.base)).ok()?;
        self.bytes.get(start..start.checked_add(length)?)
    }

    /// Of a region that is longer than an offset of 31 bits reaches, a part that contains `address`.
    /// Parts do not overlap.
    #[inline(always)]
    pub fn near(self, address: u64) -> Region<'a> {
        let part = near(self.base, self.bytes.len(), address);
        Region { base: self.base + part.start as u64, bytes: &self.bytes[part] }
    }

    /// Its addresses.
    pub fn range(self) -> Range<u64> {
        self.base..self.base.saturating_add(self.bytes.len() as u64)
    }
}

impl<'a> RegionMut<'a> {
    /// The same.
    #[inline(always)]
    pub fn get(self, address: u64, length: usize) -> Option<&'a mut [u8]> {
        let start = usize::try_from(address.wrapping_sub(self.base)).ok()?;
        self.bytes.get_mut(start..start.checked_add(length)?)
    }

    /// The same.
    #[inline(always)]
    pub fn near(self, address: u64) -> RegionMut<'a> {
        let part = near(self.base, self.bytes.len(), address);
        let base = self.base + part.start as u64;
        RegionMut { base, bytes: &mut self.bytes[part], ..self }
    }

    /// The same.
    pub fn range(self) -> Range<u64> {
        Region { base: self.base, bytes: self.bytes }.range()
    }
}

/// The part of so many bytes from `base` on that contains `address`, or all of them.
#[inline(always)]
fn near(base: u64, length: usize, address: u64) -> Range<usize> {
    const PART: usize = 1 << 30;
    if length <= i32::MAX as usize {
        return 0..length;
    }
    let offset = address.wrapping_sub(base) as usize;
    let start = (offset & !(PART - 1)).min(length);
    start..length.min(start + PART)
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
    let is_shared = region.is_shared;
    let bytes = region.get(at, length).ok_or_else(denied)?;
    Ok(exchange(bytes, is_shared, |old| atomic.apply(old, data, second)))
}

/// Replaces a word of 4 or 8 bytes by what `new` makes of it; gives the old one. Where the host or
/// other devices have the memory too, nobody sees anything between.
#[inline(always)]
pub fn exchange(bytes: &mut [u8], is_shared: bool, new: impl Fn(u64) -> u64) -> u64 {
    if is_shared {
        return exchange_shared(bytes, new);
    }
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let old = u64::from_le_bytes(word);
    bytes.copy_from_slice(&new(old).to_le_bytes()[..bytes.len()]);
    old
}

/// The same.
#[inline(never)]
fn exchange_shared(bytes: &mut [u8], new: impl Fn(u64) -> u64) -> u64 {
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
    // Nobody can access it as one word.
    exchange(bytes, false, new)
}
