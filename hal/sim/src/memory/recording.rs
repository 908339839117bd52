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
}

impl FootprintBuilder {
    /// Notes bytes that were read by a workgroup with this private memory: of that, those that it has not
    /// written itself.
    fn note_read(&mut self, own: &Range<u64>, address: u64, bytes: u64) {
        if is_private(own, address, bytes) {
            self.read.insert_without(Address(address), bytes, &self.private);
        } else {
            self.read.insert(Address(address), bytes);
        }
    }

    /// Notes bytes that were written.
    fn note_written(&mut self, own: &Range<u64>, address: u64, bytes: u64) {
        if is_private(own, address, bytes) {
            let end = address.saturating_add(bytes);
            let inside = address.max(own.start)..end.min(own.end);
            self.private.insert(Address(inside.start), inside.end - inside.start);
            self.written.insert(Address(address), inside.start - address);
            self.written.insert(Address(inside.end), end - inside.end);
        } else {
            self.written.insert(Address(address), bytes);
        }
    }
}

/// Where `count` bytes from `address` on lie in a region, as far as it has them.
fn part(base: u64, length: usize, address: u64, count: usize) -> Range<usize> {
    let start = address.wrapping_sub(base) as usize;
    start..start.saturating_add(count).min(length)
}

/// Whether an access is one to private memory, at least in part.
fn is_private(private: &Range<u64>, address: u64, count: u64) -> bool {
    !private.is_empty() && address < private.end && address.saturating_add(count) > private.start
}

impl Memory for Recording<'_> {
    fn readable(&mut self, address: u64, bytes: usize) -> Option<Region<'_>> {
        let region = self.memory.readable(address, bytes)?;
        let part = part(region.base, region.bytes.len(), address, bytes);
        let bytes = region.bytes.get(part)?;
        self.footprint.note_read(&self.private, address, bytes.len() as u64);
        Some(Region { base: address, bytes })
    }

    fn writable(&mut self, address: u64, bytes: usize) -> Option<RegionMut<'_>> {
        let region = self.memory.writable(address, bytes)?;
        let part = part(region.base, region.bytes.len(), address, bytes);
        let is_shared = region.is_shared;
        let bytes = region.bytes.get_mut(part)?;
        self.footprint.note_written(&self.private, address, bytes.len() as u64);
        Some(RegionMut { base: address, bytes, is_shared })
    }

    fn readable_by_lanes(&mut self, address: u64, bytes: usize) -> Option<Region<'_>> {
        self.memory.readable_by_lanes(address, bytes)
    }

    fn writable_by_lanes(&mut self, address: u64, bytes: usize) -> Option<RegionMut<'_>> {
        self.memory.writable_by_lanes(address, bytes)
    }

    fn note_read(&mut self, places: &LanePlaces<'_>) {
        places.runs(|start, bytes| self.footprint.note_read(&self.private, start, bytes));
    }

    fn note_written(&mut self, places: &LanePlaces<'_>) {
        places.runs(|start, bytes| self.footprint.note_written(&self.private, start, bytes));
    }

    /// None has private memory, of which it matters whether it is read before it is written.
    fn window(&mut self, address: u64, access: WindowAccess) -> Option<Window> {
        let window = self.memory.window(address, access)?;
        let is_private = is_private(&self.all_private, window.base, window.length);
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
