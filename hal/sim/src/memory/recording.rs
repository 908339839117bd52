//! Memory that notes what a workgroup reads and writes.

use super::access::{Memory, Region, RegionMut, Window, WindowAccess};
use super::footprint::FootprintBuilder;
use super::lane_places::LanePlaces;
use super::touched::TouchedRegions;
use flipwave_device::Address;
use std::ops::Range;

/// Another memory, of which it notes the bytes that are accessed. It hands out just those that are
/// asked for, but to lanes that report what they access.
pub struct Recording<'a> {
    memory: &'a mut dyn Memory,
    footprint: &'a mut FootprintBuilder,
    /// What is accessed by windows.
    touched: &'a mut TouchedRegions,
    /// Addresses of the workgroup's private memory.
    private: Range<u64>,
    /// Addresses of all workgroups' private memory.
    all_private: Range<u64>,
}

impl<'a> Recording<'a> {
    /// Notes what the workgroup with this private memory accesses, which is a part of all workgroups'.
    pub fn new(
        memory: &'a mut dyn Memory,
        footprint: &'a mut FootprintBuilder,
        touched: &'a mut TouchedRegions,
        [private, all_private]: [Range<u64>; 2],
    ) -> Recording<'a> {
        Recording { memory, footprint, touched, private, all_private }
    }

    /// Whether the region at an address has private memory of the workgroup.
    fn holds_private(&mut self, address: u64, bytes: usize) -> bool {
        !self.private.is_empty()
            && self
                .memory
                .readable(address, bytes)
                .is_none_or(|region| is_private(&self.private, region.base, region.bytes.len()))
    }
}

/// Where `count` bytes from `address` on lie in a region, as far as it has them.
fn part(base: u64, length: usize, address: u64, count: usize) -> Range<usize> {
    let start = address.wrapping_sub(base) as usize;
    start..start.saturating_add(count).min(length)
}

/// Whether an access is one to private memory, at least in part.
fn is_private(private: &Range<u64>, address: u64, count: usize) -> bool {
    !private.is_empty()
        && address < private.end
        && address.saturating_add(count as u64) > private.start
}

impl Memory for Recording<'_> {
    fn readable(&mut self, address: u64, bytes: usize) -> Option<Region<'_>> {
        let region = self.memory.readable(address, bytes)?;
        let bytes = region.bytes.get(part(region.base, region.bytes.len(), address, bytes))?;
        let FootprintBuilder { read, private, .. } = &mut *self.footprint;
        if is_private(&self.private, address, bytes.len()) {
            for at in (address..).take(bytes.len()).map(Address) {
                if !private.contains(at) {
                    read.insert(at, 1);
                }
            }
        } else {
            read.insert(Address(address), bytes.len() as u64);
        }
        Some(Region { base: address, bytes })
    }

    fn writable(&mut self, address: u64, bytes: usize) -> Option<RegionMut<'_>> {
        let region = self.memory.writable(address, bytes)?;
        let part = part(region.base, region.bytes.len(), address, bytes);
        let is_shared = region.is_shared;
        let bytes = region.bytes.get_mut(part)?;
        let FootprintBuilder { written, private, .. } = &mut *self.footprint;
        if is_private(&self.private, address, bytes.len()) {
            for at in (address..).take(bytes.len()) {
                let is_own = self.private.contains(&at);
                let set = if is_own { &mut *private } else { &mut *written };
                set.insert(Address(at), 1);
            }
        } else {
            written.insert(Address(address), bytes.len() as u64);
        }
        Some(RegionMut { base: address, bytes, is_shared })
    }

    fn readable_by_lanes(&mut self, address: u64, bytes: usize) -> Option<Region<'_>> {
        match self.holds_private(address, bytes) {
            true => self.readable(address, bytes),
            false => self.memory.readable_by_lanes(address, bytes),
        }
    }

    fn writable_by_lanes(&mut self, address: u64, bytes: usize) -> Option<RegionMut<'_>> {
        match self.holds_private(address, bytes) {
            true => self.writable(address, bytes),
            false => self.memory.writable_by_lanes(address, bytes),
        }
    }

    fn note_read(&mut self, places: &LanePlaces<'_>) {
        // Of a region with private memory each byte was handed out by itself.
        if !self.holds_private(places.base, 1) {
            places.runs(|start, bytes| self.footprint.read.insert(Address(start), bytes));
        }
    }

    fn note_written(&mut self, places: &LanePlaces<'_>) {
        if !self.holds_private(places.base, 1) {
            places.runs(|start, bytes| self.footprint.written.insert(Address(start), bytes));
        }
    }

    /// None has private memory, of which it matters whether it is read before it is written.
    fn window(&mut self, address: u64, access: WindowAccess) -> Option<Window> {
        let window = self.memory.window(address, access)?;
        let is_private = is_private(&self.all_private, window.base, window.length as usize);
        if is_private { None } else { self.touched.noting(window, address, access) }
    }

    fn generation(&self) -> Option<u64> {
        self.memory.generation()
    }

    fn notes_windows(&self) -> bool {
        true
    }

    fn allocation(&self, address: u64) -> Option<Range<u64>> {
        self.memory.allocation(address)
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.touched.take(self.footprint);
    }
}
