//! Memory that records the reads and writes of a workgroup.

use super::access::{Memory, Region, RegionMut, Window, WindowAccess};
use super::lane_places::LanePlaces;
use super::touched::{PrivateNotes, TouchedRegions};
use flipwave_device::Address;
use flipwave_machine::FootprintBuilder;
use std::ops::Range;

/// A wrapper that records accesses to another memory. It hands out only the requested bytes, except
/// to lanes that report their accesses.
pub struct Recording<'a> {
    memory: &'a mut dyn Memory,
    notes: Notes<'a>,
    /// Addresses of the private memory of all workgroups.
    all_private: Range<u64>,
}

/// Recorded accesses.
struct Notes<'a> {
    footprint: &'a mut FootprintBuilder,
    /// Accesses through windows, and to the workgroup's private memory.
    touched: &'a mut TouchedRegions,
}

impl<'a> Recording<'a> {
    /// Records the accesses of the workgroup whose private memory is the one in `touched`.
    pub fn new(
        memory: &'a mut dyn Memory,
        footprint: &'a mut FootprintBuilder,
        touched: &'a mut TouchedRegions,
        [private, all_private]: [Range<u64>; 2],
    ) -> Recording<'a> {
        touched.begin(private);
        Recording { memory, notes: Notes { footprint, touched }, all_private }
    }
}

impl Notes<'_> {
    /// Records bytes that were read or written.
    fn add(&mut self, access: WindowAccess, address: u64, bytes: u64) {
        let set = match access {
            WindowAccess::Read => &mut self.footprint.read,
            WindowAccess::Write => &mut self.footprint.written,
        };
        let private = self.touched.private_memory();
        if !is_private(&private, address, bytes) {
            return set.insert(Address(address), bytes);
        }
        let end = address.saturating_add(bytes);
        let inside = address.max(private.start)..end.min(private.end);
        set.insert(Address(address), inside.start - address);
        set.insert(Address(inside.end), end - inside.end);
        self.touched.touch_private(access, inside);
    }
}

/// Range of the bytes in a region that `count` bytes at `address` occupy, truncated at the region's
/// end.
fn part(base: u64, length: usize, address: u64, count: usize) -> Range<usize> {
    let start = address.wrapping_sub(base) as usize;
    start..start.saturating_add(count).min(length)
}

/// Returns `true` if an access overlaps private memory.
fn is_private(private: &Range<u64>, address: u64, count: u64) -> bool {
    !private.is_empty() && address < private.end && address.saturating_add(count) > private.start
}

impl Memory for Recording<'_> {
    fn readable(&mut self, address: u64, bytes: usize) -> Option<Region<'_>> {
        let region = self.memory.readable(address, bytes)?;
        let part = part(region.base, region.bytes.len(), address, bytes);
        let bytes = region.bytes.get(part)?;
        self.notes.add(WindowAccess::Read, address, bytes.len() as u64);
        Some(Region { base: address, bytes })
    }

    fn writable(&mut self, address: u64, bytes: usize) -> Option<RegionMut<'_>> {
        let region = self.memory.writable(address, bytes)?;
        let part = part(region.base, region.bytes.len(), address, bytes);
        let is_shared = region.is_shared;
        let bytes = region.bytes.get_mut(part)?;
        self.notes.add(WindowAccess::Write, address, bytes.len() as u64);
        Some(RegionMut { base: address, bytes, is_shared })
    }

    fn readable_by_lanes(&mut self, address: u64, bytes: usize) -> Option<Region<'_>> {
        self.memory.readable_by_lanes(address, bytes)
    }

    fn writable_by_lanes(&mut self, address: u64, bytes: usize) -> Option<RegionMut<'_>> {
        self.memory.writable_by_lanes(address, bytes)
    }

    fn note_read(&mut self, places: &LanePlaces<'_>) {
        places.runs(|start, bytes| self.notes.add(WindowAccess::Read, start, bytes));
    }

    fn note_written(&mut self, places: &LanePlaces<'_>) {
        places.runs(|start, bytes| self.notes.add(WindowAccess::Write, start, bytes));
    }

    /// Windows exclude private memory, for which the order of reads and writes matters.
    fn window(&mut self, address: u64, access: WindowAccess) -> Option<Window> {
        let window = self.memory.window(address, access)?;
        let is_private = is_private(&self.all_private, window.base, window.length);
        if is_private { None } else { self.notes.touched.noting(window, address, access) }
    }

    /// The window covers only the workgroup's private memory.
    fn private_window(
        &mut self,
        address: u64,
        access: WindowAccess,
    ) -> Option<(Window, PrivateNotes)> {
        let private = self.notes.touched.private_memory();
        let Window { base, length, bytes, touched } = self.memory.window(address, access)?;
        let start = base.max(private.start);
        let length = base.saturating_add(length).min(private.end).checked_sub(start)?;
        let bytes = bytes.wrapping_add((start - base) as usize);
        let window = Window { base: start, length, bytes, touched };
        private.contains(&address).then(|| (window, self.notes.touched.private_notes()))
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
        self.notes.touched.take(self.notes.footprint);
    }
}

#[cfg(test)]
mod tests {
    use super::WindowAccess::{Read, Write};
    use super::*;
    use crate::memory::AddressSpace;
    use flipwave_machine::ByteSet;

    const OWN: Range<u64> = AddressSpace::START + 100..AddressSpace::START + 1000;

    /// Sets of bytes that a workgroup accesses in several turns.
    fn touched(turns: &[&[(WindowAccess, u64, usize)]]) -> [ByteSet; 3] {
        let mut space = AddressSpace::default();
        space.allocate(4096).expect("memory");
        let (mut footprint, mut regions) = Default::default();
        for turn in turns {
            // Another workgroup's turn, in between.
            let other = [OWN.end..OWN.end + 50, OWN.start..OWN.end + 50];
            let mut unused = FootprintBuilder::default();
            let mut memory = Recording::new(&mut space, &mut unused, &mut regions, other);
            memory.writable(OWN.start, 900);
            drop(memory);
            let all = [OWN, OWN.start..OWN.end + 50];
            let mut memory = Recording::new(&mut space, &mut footprint, &mut regions, all);
            for &(access, offset, bytes) in *turn {
                let address = AddressSpace::START + offset;
                match access {
                    Read => assert!(memory.readable(address, bytes).is_some()),
                    Write => assert!(memory.writable(address, bytes).is_some()),
                }
            }
        }
        let footprint = footprint.build();
        [footprint.read, footprint.written, footprint.private]
    }

    fn set(runs: &[(u64, u64)]) -> ByteSet {
        let address = |offset: u64| Address(AddressSpace::START + offset);
        ByteSet::of_runs(runs.iter().map(|(start, bytes)| (address(*start), *bytes)))
    }

    #[test]
    fn private_memory_counts_as_read_if_it_was_not_written_before() {
        let turn = [(Read, 200, 4), (Write, 200, 8), (Read, 202, 10), (Read, 400, 1)];
        let wanted = [set(&[(200, 4), (208, 4), (400, 1)]), set(&[]), set(&[(200, 8)])];
        assert_eq!(touched(&[&turn]), wanted);
    }

    #[test]
    fn bytes_written_in_an_earlier_turn_do_not_count_as_read() {
        let turns: [&[_]; 3] = [&[(Write, 300, 4)], &[(Read, 296, 12)], &[(Write, 308, 4)]];
        let wanted = [set(&[(296, 4), (304, 4)]), set(&[]), set(&[(300, 4), (308, 4)])];
        assert_eq!(touched(&turns), wanted);
    }

    #[test]
    fn private_memory_of_other_workgroups_counts_as_device_memory() {
        let turn = [(Write, 90, 20), (Write, 990, 30), (Read, 96, 8), (Read, 1010, 20)];
        let wanted = [
            set(&[(96, 4), (1010, 20)]),
            set(&[(90, 10), (1000, 20)]),
            set(&[(100, 10), (990, 10)]),
        ];
        assert_eq!(touched(&[&turn]), wanted);
    }

    #[test]
    fn private_windows_cover_only_the_workgroups_memory() {
        let mut space = AddressSpace::default();
        space.allocate(4096).expect("memory");
        let (mut footprint, mut regions) = Default::default();
        let all = [OWN, AddressSpace::START..OWN.end + 50];
        let mut memory = Recording::new(&mut space, &mut footprint, &mut regions, all);
        for access in [Read, Write] {
            assert!(memory.window(OWN.start + 8, access).is_none());
            assert!(memory.private_window(OWN.start - 8, access).is_none());
            assert!(memory.private_window(OWN.end, access).is_none());
            let (window, notes) = memory.private_window(OWN.end - 8, access).expect("a window");
            assert_eq!(window.base..window.base + window.length, OWN);
            assert_eq!(notes.base, AddressSpace::START + 64);
        }
    }
}
