//! Bytes of LDS and device memory that differ between the two runs.

use flipwave_device::{Address, DeviceError};
use flipwave_machine::{Simulator, WrittenByte};
use std::collections::HashMap;
use std::ops::Range;

/// A byte that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongByte {
    /// Offset in LDS, or address in device memory.
    pub place: u64,
    pub golden: u8,
    pub faulty: u8,
}

/// Effect of one instruction of each run on the bytes that they wrote.
#[derive(Debug, Default)]
pub struct Change {
    /// `true` if a written byte is wrong now.
    pub is_wrong: bool,
    /// Bytes that are wrong now and were right before.
    pub new: Vec<WrongByte>,
}

/// LDS of a workgroup in both runs, each after the instructions compared so far.
#[derive(Debug)]
pub struct Lds {
    golden: Vec<u8>,
    faulty: Vec<u8>,
    wrong: u64,
}

impl Lds {
    /// Creates LDS with equal contents in both runs.
    pub fn new(bytes: &[u8]) -> Lds {
        Lds { golden: bytes.to_vec(), faulty: bytes.to_vec(), wrong: 0 }
    }

    /// Number of bytes that differ.
    pub fn wrong(&self) -> u64 {
        self.wrong
    }

    /// Updates both runs: the faulty run's LDS is now `now`, and the golden run has changed the bytes
    /// `golden`.
    pub fn change(&mut self, golden: &[(u32, u8)], now: Option<&[u8]>) -> Change {
        let changed = now.map(|now| differing(&self.faulty, now)).unwrap_or_default();
        let mut places: Vec<usize> = changed.iter().map(|(place, _)| *place as usize).collect();
        places.extend(golden.iter().map(|(place, _)| *place as usize));
        places.retain(|place| *place < self.golden.len().min(self.faulty.len()));
        places.sort_unstable();
        places.dedup();
        let were_wrong: Vec<bool> =
            places.iter().map(|place| self.golden[*place] != self.faulty[*place]).collect();
        for (bytes, changes) in [(&mut self.golden, golden), (&mut self.faulty, &changed)] {
            for (place, byte) in changes {
                if let Some(target) = bytes.get_mut(*place as usize) {
                    *target = *byte;
                }
            }
        }
        let mut change = Change::default();
        for (place, was_wrong) in places.into_iter().zip(were_wrong) {
            let (golden, faulty) = (self.golden[place], self.faulty[place]);
            let is_wrong = golden != faulty;
            change.is_wrong |= is_wrong;
            self.wrong = self.wrong + u64::from(is_wrong) - u64::from(was_wrong);
            if is_wrong && !was_wrong {
                change.new.push(WrongByte { place: place as u64, golden, faulty });
            }
        }
        change
    }
}

/// Bytes of `new` that differ from `old`, with their offsets.
pub fn differing(old: &[u8], new: &[u8]) -> Vec<(u32, u8)> {
    if old == new {
        return Vec::new();
    }
    let pairs = (0..).zip(old.iter().zip(new));
    pairs.filter(|(_, (old, new))| old != new).map(|(place, (_, new))| (place, *new)).collect()
}

/// Bytes per line.
const LINE: u64 = 64;

/// Bytes of device memory that differ.
#[derive(Debug, Default)]
pub struct Memory {
    /// Lines by address divided by [`LINE`].
    lines: HashMap<u64, Line>,
    /// Memory that outlives dispatches.
    lasting: Vec<Range<u64>>,
    lasting_bytes: u64,
    other_bytes: u64,
}

#[derive(Debug)]
struct Line {
    /// Mask of the bytes that differ; never zero.
    mask: u64,
    /// Their values in the golden run.
    golden: [u8; LINE as usize],
}

impl Memory {
    /// Creates memory without differences; the device's allocations between two dispatches outlive
    /// dispatches.
    pub fn new(device: &Simulator) -> Memory {
        let allocations = device.allocations().into_iter();
        let lasting = allocations.map(|(start, bytes)| start.0..start.0 + bytes);
        Memory { lasting: lasting.collect(), ..Memory::default() }
    }

    /// Finds all differences between the memories of two devices with the same allocations, between two
    /// dispatches.
    pub fn between(golden: &Simulator, faulty: &Simulator) -> Result<Memory, DeviceError> {
        /// Bytes compared at once.
        const PART: u64 = 1 << 16;
        let mut memory = Memory::new(golden);
        let [mut golden_part, mut faulty_part] = [vec![0; PART as usize], vec![0; PART as usize]];
        for Range { start, end } in memory.lasting.clone() {
            for at in (start..end).step_by(PART as usize) {
                let bytes = (end - at).min(PART) as usize;
                golden.read(Address(at), &mut golden_part[..bytes])?;
                faulty.read(Address(at), &mut faulty_part[..bytes])?;
                for (offset, golden) in differing(&faulty_part[..bytes], &golden_part[..bytes]) {
                    memory.insert(at + u64::from(offset), golden);
                }
            }
        }
        Ok(memory)
    }

    /// Number of differing bytes in memory that outlives dispatches, and in other memory.
    pub fn wrong(&self) -> (u64, u64) {
        (self.lasting_bytes, self.other_bytes)
    }

    /// Addresses of the differing bytes, ascending, with their values in the golden run.
    pub fn bytes(&self) -> Vec<(u64, u8)> {
        let mut lines: Vec<_> = self.lines.iter().collect();
        lines.sort_unstable_by_key(|(line, _)| **line);
        let bytes = lines.into_iter().flat_map(|(line, Line { mask, golden })| {
            let positions = (0..LINE).filter(move |at| mask >> at & 1 != 0);
            positions.map(move |at| (line * LINE + at, golden[at as usize]))
        });
        bytes.collect()
    }

    /// Returns `true` if the byte outlives dispatches.
    pub fn lasts(&self, place: u64) -> bool {
        self.lasting.iter().any(|range| range.contains(&place))
    }

    /// Updates both runs: the golden run has written `golden`, the faulty run `faulty`; `now` reads the
    /// faulty run's memory.
    pub fn change(
        &mut self,
        golden: &[(Address, u8)],
        faulty: &[WrittenByte],
        mut now: impl FnMut(u64) -> Option<u8>,
    ) -> Change {
        let is_same = golden.len() == faulty.len()
            && golden.iter().zip(faulty).all(|(golden_byte, faulty_byte)| {
                *golden_byte == (faulty_byte.address, faulty_byte.after)
            });
        if self.lines.is_empty() && is_same {
            return Change::default();
        }
        let mut places: Vec<u64> = golden.iter().map(|(address, _)| address.0).collect();
        places.extend(faulty.iter().map(|byte| byte.address.0));
        places.sort_unstable();
        places.dedup();
        let were_wrong: Vec<bool> =
            places.iter().map(|place| self.golden(*place).is_some()).collect();
        for byte in faulty {
            // Unless the byte already differed, the golden run's value is the value that both runs had
            // before.
            if self.golden(byte.address.0).is_none() {
                self.insert(byte.address.0, byte.before);
            }
        }
        for (address, byte) in golden {
            self.remove(address.0);
            self.insert(address.0, *byte);
        }
        let mut change = Change::default();
        for (place, was_wrong) in places.into_iter().zip(were_wrong) {
            let Some(golden) = self.golden(place) else { continue };
            match now(place) {
                Some(faulty) if faulty != golden => {
                    change.is_wrong = true;
                    if !was_wrong {
                        change.new.push(WrongByte { place, golden, faulty });
                    }
                }
                _ => self.remove(place),
            }
        }
        change
    }

    /// The golden run's value of a byte that differs.
    fn golden(&self, place: u64) -> Option<u8> {
        let line = self.lines.get(&(place / LINE))?;
        let at = place % LINE;
        (line.mask >> at & 1 != 0).then(|| line.golden[at as usize])
    }

    fn insert(&mut self, place: u64, golden: u8) {
        let line = self.lines.entry(place / LINE);
        let line = line.or_insert(Line { mask: 0, golden: [0; LINE as usize] });
        line.mask |= 1 << (place % LINE);
        line.golden[(place % LINE) as usize] = golden;
        *self.count(place) += 1;
    }

    fn remove(&mut self, place: u64) {
        let Some(line) = self.lines.get_mut(&(place / LINE)) else { return };
        let bit = 1 << (place % LINE);
        if line.mask & bit == 0 {
            return;
        }
        line.mask &= !bit;
        if line.mask == 0 {
            self.lines.remove(&(place / LINE));
        }
        *self.count(place) -= 1;
    }

    fn count(&mut self, place: u64) -> &mut u64 {
        if self.lasts(place) { &mut self.lasting_bytes } else { &mut self.other_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn byte(address: u64, before: u8, after: u8) -> WrittenByte {
        WrittenByte { address: Address(address), before, after }
    }

    #[test]
    fn lds_bytes_differ_until_rewritten_correctly() {
        let mut lds = Lds::new(&[0; 8]);
        assert!(lds.change(&[(2, 5)], Some(&[0, 0, 5, 0, 0, 0, 0, 0])).new.is_empty());
        let change = lds.change(&[(3, 6)], Some(&[0, 0, 5, 7, 0, 0, 0, 1]));
        let wrong = |place, golden, faulty| WrongByte { place, golden, faulty };
        assert_eq!(change.new, [wrong(3, 6, 7), wrong(7, 0, 1)]);
        assert_eq!(lds.wrong(), 2);
        // One run writes the value that the other already has.
        let change = lds.change(&[(3, 7)], None);
        assert!(!change.is_wrong && lds.wrong() == 1);
        lds.change(&[], Some(&[0, 0, 5, 7, 0, 0, 0, 0]));
        assert_eq!(lds.wrong(), 0);
    }

    #[test]
    fn memory_differs_in_bytes_written_differently() {
        let mut memory = Memory { lasting: vec![0..50, 50..100], ..Memory::default() };
        let golden = [(Address(10), 1), (Address(11), 2)];
        // The faulty run writes one byte correctly, one at a wrong address, and one outside.
        let change =
            memory.change(&golden, &[byte(10, 0, 1), byte(12, 9, 2), byte(200, 0, 3)], |place| {
                match place {
                    10 => Some(1),
                    12 => Some(2),
                    200 => Some(3),
                    _ => Some(0),
                }
            });
        let wrong = |place, golden, faulty| WrongByte { place, golden, faulty };
        assert_eq!(change.new, [wrong(11, 2, 0), wrong(12, 9, 2), wrong(200, 0, 3)]);
        assert_eq!(memory.wrong(), (2, 1));
        // A wrong byte is overwritten with the same value in both runs, and is not reported again.
        let change = memory.change(&[(Address(12), 4)], &[byte(12, 2, 4)], |_| Some(4));
        assert!(!change.is_wrong && change.new.is_empty());
        assert_eq!(memory.wrong(), (1, 1));
        // A different wrong value in a wrong byte is not reported as new.
        let change = memory.change(&[(Address(11), 7)], &[byte(11, 0, 8)], |_| Some(8));
        assert!(change.is_wrong && change.new.is_empty());
    }

    #[test]
    fn equal_writes_leave_no_difference() {
        let mut memory = Memory { lasting: vec![0..50, 50..100], ..Memory::default() };
        let change = memory.change(&[(Address(10), 1)], &[byte(10, 0, 1)], |_| Some(1));
        assert!(!change.is_wrong && memory.wrong() == (0, 0));
    }
}
