//! Loads and stores of all lanes.

use super::Reach;
use crate::compute::{LANES, Row};
use crate::program::{Destination, MemoryAccess, MemorySpace, MemoryValue, Source};
use flipwave_device::{AccessKind, FaultCause};
use flipwave_machine::{ByteSetBuilder, Line, lines_of};
use smallvec::SmallVec;

/// Values of lanes, of which vectors have several.
type Rows = SmallVec<[Row; 4]>;

impl Reach<'_> {
    /// Loads values.
    pub fn load(
        &mut self,
        access: &MemoryAccess,
        values: &[(MemoryValue, Destination)],
        lanes: u32,
    ) -> Result<(), FaultCause> {
        let addresses = self.addresses(access);
        let parts: SmallVec<[MemoryValue; 4]> = values.iter().map(|(part, _)| *part).collect();
        let rows = match self.load_together(access, &parts, &addresses, lanes) {
            Some(rows) => rows,
            None => self.load_each(access, &parts, &addresses, lanes)?,
        };
        for ((_, destination), row) in values.iter().zip(&rows) {
            self.wave.registers.write(*destination, lanes, row);
        }
        Ok(())
    }

    /// Loads values from memory in contiguous host memory; `None` if a lane's address is not in it.
    fn load_together(
        &mut self,
        access: &MemoryAccess,
        parts: &[MemoryValue],
        addresses: &Row,
        lanes: u32,
    ) -> Option<Rows> {
        let first = addresses[lanes.trailing_zeros() as usize % LANES];
        let (base, bytes) = match access.space {
            MemorySpace::Shared => (0, &self.shared[..]),
            MemorySpace::Global | MemorySpace::Generic => self.memory.page(first)?,
            MemorySpace::Local | MemorySpace::Arguments => return None,
        };
        let offsets = offsets(access, addresses, lanes, base..base + bytes.len() as u64)?;
        let row = |part: &MemoryValue| {
            let (at, size) = (part.offset as usize, part.bytes as usize);
            let mut row = [0; LANES];
            for lane in Self::lanes(lanes) {
                let start = offsets[lane] as usize + at;
                row[lane] = part.value(&bytes[start..start + size]);
            }
            row
        };
        let rows = parts.iter().map(row).collect();
        if access.reaches_device()
            && let Some(footprint) = &mut self.footprint
        {
            record(&mut footprint.read, addresses, access.bytes, lanes);
        }
        Some(rows)
    }

    /// Loads values lane by lane.
    fn load_each(
        &mut self,
        access: &MemoryAccess,
        parts: &[MemoryValue],
        addresses: &Row,
        lanes: u32,
    ) -> Result<Rows, FaultCause> {
        let mut rows: Rows = SmallVec::from_elem([0; LANES], parts.len());
        for lane in Self::lanes(lanes) {
            let location = self.locate(access, addresses[lane], lane)?;
            for (part, row) in parts.iter().zip(&mut rows) {
                let mut place = location;
                place.address = place.address.wrapping_add(part.offset);
                let bits = self.read_at(place, part.bytes, lane, AccessKind::Read)?;
                row[lane] = part.value(&bits.to_le_bytes()[..part.bytes as usize]);
            }
        }
        Ok(rows)
    }

    /// Stores values.
    pub fn store(
        &mut self,
        access: &MemoryAccess,
        values: &[(MemoryValue, Source)],
        lanes: u32,
    ) -> Result<(), FaultCause> {
        let rows: Rows = values.iter().map(|(_, source)| self.row(*source)).collect();
        let addresses = self.addresses(access);
        if self.store_together(access, values, &rows, &addresses, lanes).is_some() {
            return Ok(());
        }
        for lane in Self::lanes(lanes) {
            let location = self.locate(access, addresses[lane], lane)?;
            for ((part, _), row) in values.iter().zip(&rows) {
                let mut place = location;
                place.address = place.address.wrapping_add(part.offset);
                self.write_at(place, part.bytes, row[lane], lane, AccessKind::Write)?;
            }
        }
        Ok(())
    }

    /// Stores values in contiguous host memory; `None`, without having changed anything, if a lane's address is
    /// not in it.
    fn store_together(
        &mut self,
        access: &MemoryAccess,
        values: &[(MemoryValue, Source)],
        rows: &Rows,
        addresses: &Row,
        lanes: u32,
    ) -> Option<()> {
        if self.is_recording {
            return None;
        }
        let first = addresses[lanes.trailing_zeros() as usize % LANES];
        let (base, bytes) = match access.space {
            MemorySpace::Shared => (0, &mut self.shared[..]),
            MemorySpace::Global | MemorySpace::Generic => self.memory.page_mut(first)?,
            MemorySpace::Local | MemorySpace::Arguments => return None,
        };
        let offsets = offsets(access, addresses, lanes, base..base + bytes.len() as u64)?;
        for lane in Self::lanes(lanes) {
            for ((part, _), row) in values.iter().zip(rows) {
                let (start, size) = ((offsets[lane] + part.offset) as usize, part.bytes as usize);
                bytes[start..start + size].copy_from_slice(&row[lane].to_le_bytes()[..size]);
            }
        }
        if access.reaches_device()
            && let Some(footprint) = &mut self.footprint
        {
            record(&mut footprint.written, addresses, access.bytes, lanes);
        }
        Some(())
    }
}

impl MemoryValue {
    /// The value of bytes in memory.
    #[inline]
    fn value(&self, bytes: &[u8]) -> u64 {
        let bits = match *bytes {
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
            _ => bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
        };
        let shift = 64 - 8 * self.bytes as u32;
        if self.is_signed { ((bits << shift) as i64 >> shift) as u64 } else { bits }
    }
}

/// Offsets of lanes in a range of addresses; `None` if the access of a lane is misaligned or not in the range.
fn offsets(
    access: &MemoryAccess,
    addresses: &Row,
    lanes: u32,
    range: std::ops::Range<u64>,
) -> Option<Row> {
    let last = (range.end - range.start).checked_sub(access.bytes)?;
    let mut offsets = [0; LANES];
    let mut is_outside = false;
    for (lane, (offset, address)) in offsets.iter_mut().zip(addresses).enumerate() {
        *offset = address.wrapping_sub(range.start);
        let is_wrong = *offset > last || address & (access.bytes - 1) != 0;
        is_outside |= is_wrong && lanes >> lane & 1 != 0;
    }
    (!is_outside).then_some(offsets)
}

/// Records the bytes that lanes access: a number of bytes each, at multiples of it.
pub(crate) fn record(set: &mut ByteSetBuilder, addresses: &Row, bytes: u64, lanes: u32) {
    let mut last: Line = [0, 0];
    for lane in Reach::lanes(lanes) {
        for [line, mask] in lines_of(addresses[lane], bytes) {
            if line != last[0] {
                set.insert_each(Some(last).filter(|[_, mask]| *mask != 0));
                last = [line, 0];
            }
            last[1] |= mask;
        }
    }
    set.insert_each(Some(last).filter(|[_, mask]| *mask != 0));
}
