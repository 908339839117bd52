//! Accesses of single lanes to memory.

use super::Reach;
use crate::address::Windows;
use crate::compute::{LANES, Row};
use crate::program::{MemoryAccess, MemorySpace};
use crate::wave::Frame;
use flipwave_arch::Lane;
use flipwave_device::{AccessKind, Address, FaultCause};
use flipwave_machine::WrittenByte;
use flipwave_ptx::Space;

/// A location in a state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// The state space; never generic.
    pub space: MemorySpace,
    /// Address in the state space.
    pub address: u64,
}

impl Location {
    /// The generic address, for reports.
    fn generic(self) -> Address {
        let base = match self.space {
            MemorySpace::Shared => Windows::base(Space::Shared),
            MemorySpace::Local => Windows::base(Space::Local),
            MemorySpace::Arguments => Windows::base(Space::Param),
            MemorySpace::Generic | MemorySpace::Global => 0,
        };
        Address(base.wrapping_add(self.address))
    }
}

impl Reach<'_> {
    /// Addresses of an access by lane, before its state space is known.
    pub fn addresses(&self, access: &MemoryAccess) -> Row {
        let mut addresses = self.row(access.base);
        for address in &mut addresses {
            *address = address.wrapping_add(access.offset as u64);
        }
        addresses
    }

    /// The location that a lane accesses.
    pub fn locate(
        &self,
        access: &MemoryAccess,
        address: u64,
        lane: usize,
    ) -> Result<Location, FaultCause> {
        let location = match access.space {
            MemorySpace::Generic => {
                let space = Windows::space_of(address);
                let address = address.wrapping_sub(Windows::base(space));
                let space = match space {
                    Space::Shared => MemorySpace::Shared,
                    Space::Local => MemorySpace::Local,
                    Space::Param => MemorySpace::Arguments,
                    _ => MemorySpace::Global,
                };
                Location { space, address }
            }
            space => Location { space, address },
        };
        if !address.is_multiple_of(access.bytes) {
            return Err(FaultCause::Misaligned {
                address: location.generic(),
                alignment: access.bytes as u32,
                lane: Some(Lane(lane as u8)),
            });
        }
        Ok(location)
    }

    /// Reads a value of at most 8 bytes.
    pub fn read_at(
        &mut self,
        location: Location,
        bytes: u64,
        lane: usize,
        kind: AccessKind,
    ) -> Result<u64, FaultCause> {
        let mut buffer = [0; 8];
        let part = &mut buffer[..bytes as usize];
        let is_read = match location.space {
            MemorySpace::Global | MemorySpace::Generic => {
                let is_read = self.memory.load(Address(location.address), part);
                if let (true, Some(footprint)) = (is_read, &mut self.footprint) {
                    footprint.read.insert(Address(location.address), bytes);
                }
                is_read
            }
            MemorySpace::Shared => copy_from(self.shared, location.address, part),
            MemorySpace::Arguments => copy_from(&self.launch.arguments, location.address, part),
            MemorySpace::Local => {
                let frame = self.frame_at(location.address);
                return frame
                    .and_then(|frame| frame.read(location.address, bytes, lane))
                    .ok_or_else(|| violation(location, kind, lane));
            }
        };
        if is_read { Ok(u64::from_le_bytes(buffer)) } else { Err(violation(location, kind, lane)) }
    }

    /// Writes the lowest bytes of a value.
    pub fn write_at(
        &mut self,
        location: Location,
        bytes: u64,
        value: u64,
        lane: usize,
        kind: AccessKind,
    ) -> Result<(), FaultCause> {
        let content = value.to_le_bytes();
        let part = &content[..bytes as usize];
        let is_written = match location.space {
            MemorySpace::Global | MemorySpace::Generic => self.write_device(location.address, part),
            MemorySpace::Shared => copy_to(self.shared, location.address, part),
            MemorySpace::Arguments => false,
            MemorySpace::Local => {
                let frame = self.frame_at(location.address);
                frame.and_then(|frame| frame.write(location.address, bytes, value, lane)).is_some()
            }
        };
        if is_written { Ok(()) } else { Err(violation(location, kind, lane)) }
    }

    /// Writes device memory; returns `false` if the bytes are not inside one allocation.
    fn write_device(&mut self, address: u64, bytes: &[u8]) -> bool {
        if self.is_recording {
            let mut before = vec![0; bytes.len()];
            if !self.memory.read(Address(address), &mut before) {
                return false;
            }
            let changes = before.into_iter().zip(bytes).zip(address..);
            self.written.extend(changes.map(|((before, after), at)| WrittenByte {
                address: Address(at),
                before,
                after: *after,
            }));
        }
        let is_written = self.memory.write(Address(address), bytes);
        if let (true, Some(footprint)) = (is_written, &mut self.footprint) {
            footprint.written.insert(Address(address), bytes.len() as u64);
        }
        is_written
    }

    /// The frame that a local address belongs to.
    fn frame_at(&mut self, address: u64) -> Option<&mut Frame> {
        self.wave.frames.iter_mut().rev().find(|frame| frame.base <= address)
    }

    /// Lanes of a mask.
    pub fn lanes(mask: u32) -> impl Iterator<Item = usize> {
        (0..LANES).filter(move |lane| mask >> lane & 1 != 0)
    }
}

fn violation(location: Location, access: AccessKind, lane: usize) -> FaultCause {
    let lane = Some(Lane(lane as u8));
    FaultCause::MemoryViolation { address: location.generic(), access, lane }
}

fn range(address: u64, bytes: usize) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(address).ok()?;
    Some(start..start.checked_add(bytes)?)
}

fn copy_from(memory: &[u8], address: u64, bytes: &mut [u8]) -> bool {
    let found = range(address, bytes.len()).and_then(|range| memory.get(range));
    found.map(|found| bytes.copy_from_slice(found)).is_some()
}

fn copy_to(memory: &mut [u8], address: u64, bytes: &[u8]) -> bool {
    let found = range(address, bytes.len()).and_then(|range| memory.get_mut(range));
    found.map(|found| found.copy_from_slice(bytes)).is_some()
}
