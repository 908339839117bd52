//! Streams: records that hooks append to a ring in device memory, and that the host takes.

use super::output::{Output, OutputKind};
use flipwave_device::{Address, Device, DeviceError};
use std::collections::BTreeMap;

/// Size of the header in bytes (`struct flipwave_stream` of `flipwave_tool.h`).
const HEADER: usize = 32;
/// Offset of `taken`.
const TAKEN: u64 = 8;
/// Offset of `waits`.
const WAITS: u64 = 16;

/// The largest number of records that a wave appends at once. Waves can wait only for a ring of this size.
pub(super) const MOST_AT_ONCE: u64 = 64;

/// The header of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    /// Number of reserved records.
    reserved: u64,
    /// Number of records that the host has taken.
    taken: u64,
}

impl Header {
    fn read(bytes: &[u8]) -> Header {
        let (words, _) = bytes.as_chunks();
        let word = |at: usize| words.get(at).map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Header { reserved: word(0), taken: word(1) }
    }

    /// The number of the record after the last one that fits into a ring.
    fn end(self, capacity: u64) -> u64 {
        self.reserved.min(self.taken.saturating_add(capacity))
    }
}

/// Appends the records of a ring that have not been taken to `data`, and returns the number of records that
/// did not fit. `bytes` is the content of the variable after the dispatch, a ring of `capacity` records of
/// `size` bytes.
pub(super) fn take_rest(bytes: &[u8], size: usize, capacity: u64, data: &mut Vec<u8>) -> u64 {
    let header = Header::read(bytes);
    let ring = bytes.get(HEADER..).unwrap_or_default();
    let end = header.end(capacity);
    for number in header.taken..end {
        let start = (number % capacity) as usize * size;
        data.extend(ring.get(start..start + size).unwrap_or_default());
    }
    header.reserved - end.min(header.reserved)
}

/// The records that were taken from the streams of a dispatch while it ran, by name of the stream.
#[derive(Clone, Debug, Default)]
pub struct TakenRecords(BTreeMap<String, Vec<u8>>);

impl TakenRecords {
    /// Removes and returns the records of a stream.
    pub(super) fn take(&mut self, name: &str) -> Vec<u8> {
        self.0.remove(name).unwrap_or_default()
    }
}

/// Memory that rings are in, while a kernel appends records.
pub trait StreamMemory {
    /// Why memory cannot be accessed.
    type Error;

    /// Copies from memory.
    ///
    /// # Errors
    /// The memory cannot be read.
    fn read(&mut self, address: Address, bytes: &mut [u8]) -> Result<(), Self::Error>;

    /// Copies to memory.
    ///
    /// # Errors
    /// The memory cannot be written.
    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), Self::Error>;
}

impl<D: Device> StreamMemory for D {
    type Error = DeviceError;

    fn read(&mut self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        Device::read(self, address, bytes)
    }

    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        Device::write(self, address, bytes)
    }
}

/// The streams of a loaded code object.
#[derive(Clone, Debug)]
pub struct LoadedStreams {
    streams: Vec<LoadedStream>,
}

#[derive(Clone, Debug)]
struct LoadedStream {
    name: String,
    address: Address,
    /// Size of a record in bytes.
    size: usize,
    /// Number of records.
    capacity: u64,
}

impl LoadedStreams {
    /// The streams among `outputs`, rings of `capacity` records. `address_of` returns the address of a variable in
    /// memory; `None` if no hook uses it.
    pub(super) fn find<E>(
        address_of: impl Fn(&str) -> Option<Result<Address, E>>,
        outputs: &[Output],
        capacity: u64,
    ) -> Result<LoadedStreams, E> {
        let streams = outputs.iter().filter(|output| output.kind == OutputKind::Stream);
        let mut found = Vec::new();
        for output in streams {
            let Some(address) = address_of(&output.name) else { continue };
            found.push(LoadedStream {
                name: output.name.clone(),
                address: address?,
                size: output.size,
                capacity,
            });
        }
        Ok(LoadedStreams { streams: found })
    }

    /// Returns `true` if there are streams, all of which are large enough for waves to wait.
    pub fn can_wait(&self) -> bool {
        !self.streams.is_empty() && self.streams.iter().all(|s| s.capacity >= MOST_AT_ONCE)
    }

    /// Makes waves wait for space in the rings, or lose records.
    ///
    /// # Errors
    /// The memory cannot be written.
    pub fn set_waits<M: StreamMemory>(&self, memory: &mut M, waits: bool) -> Result<(), M::Error> {
        let word = u32::from(waits).to_le_bytes();
        let mut streams = self.streams.iter();
        streams.try_for_each(|stream| memory.write(Address(stream.address.0 + WAITS), &word))
    }

    /// Takes the records that are written, up to the first one that is not.
    ///
    /// # Errors
    /// The memory cannot be accessed.
    pub fn take<M: StreamMemory>(
        &self,
        memory: &mut M,
        taken: &mut TakenRecords,
    ) -> Result<(), M::Error> {
        for stream in &self.streams {
            let mut head = [0; HEADER];
            memory.read(stream.address, &mut head)?;
            let header = Header::read(&head);
            let end = header.end(stream.capacity);
            // Copying some records now and then takes less time than copying each of them at once.
            if end - header.taken < stream.capacity / 2 {
                continue;
            }
            let mut next = header.taken;
            let data = taken.0.entry(stream.name.clone()).or_default();
            while next < end {
                let start = next % stream.capacity;
                let wanted = (end - next).min(stream.capacity - start);
                let written = stream.written(memory, next, start, wanted)?;
                let mut bytes = vec![0; written as usize * stream.size];
                let ring = stream.address.0 + HEADER as u64;
                memory.read(Address(ring + start * stream.size as u64), &mut bytes)?;
                data.append(&mut bytes);
                next += written;
                if written < wanted {
                    break;
                }
            }
            memory.write(Address(stream.address.0 + TAKEN), &next.to_le_bytes())?;
        }
        Ok(())
    }
}

impl LoadedStream {
    /// The number of records that are written without a gap, of the `wanted` ones from number `next`, which
    /// begin at `start` in the ring.
    fn written<M: StreamMemory>(
        &self,
        memory: &mut M,
        next: u64,
        start: u64,
        wanted: u64,
    ) -> Result<u64, M::Error> {
        let marks = self.address.0 + HEADER as u64 + self.capacity * self.size as u64;
        let mut bytes = vec![0; wanted as usize * 4];
        // The marks follow the records, aligned to four bytes.
        memory.read(Address(marks.next_multiple_of(4) + 4 * start), &mut bytes)?;
        let (marks, _) = bytes.as_chunks();
        let is_written = |(number, mark): &(u64, &[u8; 4])| {
            u32::from_le_bytes(**mark) == (*number as u32).wrapping_add(1)
        };
        Ok((next..).zip(marks).take_while(is_written).count() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream with records of four bytes and their marks.
    fn memory(header: [u64; 4], records: &[u32]) -> Vec<u8> {
        let head = header.iter().flat_map(|word| word.to_le_bytes());
        let records = [records, records].concat();
        head.chain(records.into_iter().flat_map(u32::to_le_bytes)).collect()
    }

    #[test]
    fn records_after_the_taken_ones_are_read_in_order() {
        // Records 3 to 5 in a ring of four.
        let bytes = memory([6, 3, 1, 0], &[14, 15, 12, 13]);
        let mut data = Vec::new();
        assert_eq!(take_rest(&bytes, 4, 4, &mut data), 0);
        let words: Vec<u8> = data.iter().step_by(4).copied().collect();
        assert_eq!(words, [13, 14, 15]);
    }

    #[test]
    fn records_that_do_not_fit_are_lost() {
        let mut data = Vec::new();
        assert_eq!(take_rest(&memory([7, 0, 0, 0], &[1, 2, 3, 4]), 4, 4, &mut data), 3);
        assert_eq!(data.len(), 16);
        assert_eq!(take_rest(&[], 4, 4, &mut data), 0);
    }
}
