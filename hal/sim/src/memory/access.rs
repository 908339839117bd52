//! Interface through which instructions access memory.

use super::atomic::Atomic;
use super::lane_places::LanePlaces;
use super::touched::{PrivateNotes, TouchedRegion};
use flipwave_device::{AccessKind, Address, FaultCause};
use flipwave_isa::Lane;
use flipwave_machine::WrittenByte;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Memory as the executing waves see it.
///
/// Implementations hand out whole mapped regions, so that an instruction looks up one region and
/// then serves all lanes that access it. A request for `bytes` bytes at `address` announces that
/// these bytes are accessed as far as the region contains them. To access other bytes of the
/// region, the caller checks whether the region contains them and makes another request if not. An
/// implementation that must observe each accessed byte hands out only the requested ones.
pub trait Memory {
    /// Returns a readable region that contains `address`.
    fn readable(&mut self, address: u64, bytes: usize) -> Option<Region<'_>>;

    /// Returns a writable region that contains `address` and no code.
    fn writable(&mut self, address: u64, bytes: usize) -> Option<RegionMut<'_>>;

    /// Like [`Memory::readable`], for lanes that report the bytes they have read with
    /// [`Memory::note_read`], so that an observing implementation need not hand out each access
    /// separately.
    fn readable_by_lanes(&mut self, address: u64, bytes: usize) -> Option<Region<'_>> {
        self.readable(address, bytes)
    }

    /// Like [`Memory::writable`], for lanes that report the written bytes with
    /// [`Memory::note_written`].
    fn writable_by_lanes(&mut self, address: u64, bytes: usize) -> Option<RegionMut<'_>> {
        self.writable(address, bytes)
    }

    /// Records reads by lanes from a region that [`Memory::readable_by_lanes`] handed out.
    fn note_read(&mut self, _places: &LanePlaces<'_>) {}

    /// Records writes by lanes to a region that [`Memory::writable_by_lanes`] handed out.
    fn note_written(&mut self, _places: &LanePlaces<'_>) {}

    /// Returns mapped bytes around `address`, valid while [`Memory::generation`] does not change;
    /// `None` if each access must be observed. If [`Memory::notes_windows`] returns `true`,
    /// accesses through the window must be recorded in [`Window::touched`].
    fn window(&mut self, _address: u64, _access: WindowAccess) -> Option<Window> {
        None
    }

    /// Returns a window of private memory, and the location where accesses to it are recorded.
    fn private_window(
        &mut self,
        address: u64,
        access: WindowAccess,
    ) -> Option<(Window, PrivateNotes)> {
        Some((self.window(address, access)?, PrivateNotes::NONE))
    }

    /// Generation number, which changes whenever windows become invalid; `None` if there are no
    /// windows.
    fn generation(&self) -> Option<u64> {
        None
    }

    /// Returns `true` if accesses through windows must be recorded.
    fn notes_windows(&self) -> bool {
        false
    }

    /// Requested address range of the allocation whose pages contain `address`; `None` if it is
    /// unknown.
    fn allocation(&self, _address: u64) -> Option<Range<u64>> {
        None
    }

    /// Takes the writes since the last call; empty if they are not recorded.
    fn take_written(&mut self) -> Vec<WrittenByte> {
        Vec::new()
    }
}

/// Kind of access that a window is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WindowAccess {
    /// The bytes are read.
    Read,
    /// The bytes are written.
    Write,
}

/// Consecutive mapped bytes at a host address.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Window {
    /// Device address of the first byte.
    pub base: u64,
    /// Number of bytes.
    pub length: u64,
    /// Host address of the first byte.
    pub bytes: *mut u8,
    /// Location where accesses are recorded; null if they are not.
    pub touched: *mut TouchedRegion,
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
    /// `true` if the host or other devices may access the bytes at the same time.
    pub is_shared: bool,
}

impl<'a> Region<'a> {
    /// Returns `length` bytes at `address`, if all of them lie in this region.
    #[inline(always)]
    pub fn get(self, address: u64, length: usize) -> Option<&'a [u8]> {
        let start = usize::try_from(address.wrapping_sub(self.base)).ok()?;
        self.bytes.get(start..start.checked_add(length)?)
    }

    /// For a region that is too long for offsets of 31 bits, returns a part that contains
    /// `address`. Parts do not overlap.
    #[inline(always)]
    pub fn near(self, address: u64) -> Region<'a> {
        let part = near(self.base, self.bytes.len(), address);
        Region { base: self.base + part.start as u64, bytes: &self.bytes[part] }
    }

    /// Addresses of the region.
    pub fn range(self) -> Range<u64> {
        self.base..self.base.saturating_add(self.bytes.len() as u64)
    }
}

impl<'a> RegionMut<'a> {
    /// Returns `length` bytes at `address`, if all of them lie in this region.
    #[inline(always)]
    pub fn get(self, address: u64, length: usize) -> Option<&'a mut [u8]> {
        let start = usize::try_from(address.wrapping_sub(self.base)).ok()?;
        self.bytes.get_mut(start..start.checked_add(length)?)
    }

    /// Like [`Region::near`].
    #[inline(always)]
    pub fn near(self, address: u64) -> RegionMut<'a> {
        let part = near(self.base, self.bytes.len(), address);
        let base = self.base + part.start as u64;
        RegionMut { base, bytes: &mut self.bytes[part], ..self }
    }

    /// Addresses of the region.
    pub fn range(self) -> Range<u64> {
        Region { base: self.base, bytes: self.bytes }.range()
    }
}

/// Part of a region of `length` bytes at `base` that contains `address`; the whole region if it is
/// short.
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

/// Creates the fault for an access to unmapped memory.
pub fn violation(address: u64, access: AccessKind, lane: Option<Lane>) -> FaultCause {
    FaultCause::MemoryViolation { address: Address(address), access, lane }
}

/// Reads bytes at an address, which may lie in adjacent regions.
///
/// # Errors
/// Returns a memory violation at the first unmapped byte.
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
/// Returns a memory violation at the first byte that is unmapped or code; the bytes before it are
/// written.
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

/// Reads, modifies and writes one memory word; returns the old value. The operands are the data,
/// and the comparison value or mask.
///
/// # Errors
/// Returns a fault if the address is misaligned or not mapped.
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
    // An atomic reads before it writes, and is recorded as both.
    let denied = || violation(at, AccessKind::Atomic, lane);
    memory.readable(at, length).and_then(|region| region.get(at, length)).ok_or_else(denied)?;
    let region = memory.writable(at, length).ok_or_else(denied)?;
    let is_shared = region.is_shared;
    let bytes = region.get(at, length).ok_or_else(denied)?;
    Ok(exchange(bytes, is_shared, |old| atomic.apply(old, data, second)))
}

/// Replaces a word of 4 or 8 bytes by `new(old)`; returns the old value. If the host or other
/// devices share the memory, the replacement is atomic.
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

/// Atomically replaces a word of shared memory.
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
    // Such a word cannot be accessed atomically.
    exchange(bytes, false, new)
}
