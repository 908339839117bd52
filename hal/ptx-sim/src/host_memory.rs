//! Host memory that the GPU may access, at the addresses of the host.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// The map of host memory: sizes of ranges by their first address. Ranges do not overlap.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct HostMemory {
    ranges: BTreeMap<u64, u64>,
}

impl HostMemory {
    /// Lets the GPU access a range. Returns `false` if it overlaps with another one or with address 0.
    ///
    /// # Safety
    /// Until the range is removed from this map and all clones, it is memory of this process that can be read
    /// and written. The host accesses it like memory that is shared with another process.
    pub unsafe fn add(&mut self, start: u64, bytes: u64) -> bool {
        let Some(end) = start.checked_add(bytes).filter(|_| start != 0 && bytes != 0) else {
            return false;
        };
        let before = self.ranges.range(..end).next_back();
        if before.is_some_and(|(known, bytes)| known + bytes > start) {
            return false;
        }
        self.ranges.insert(start, bytes);
        true
    }

    /// Takes a range away from the GPU. Returns `false` if there is no range with this first address.
    pub fn remove(&mut self, start: u64) -> bool {
        self.ranges.remove(&start).is_some()
    }

    /// Returns `true` if one range contains all of these bytes.
    fn contains(&self, address: u64, bytes: usize) -> bool {
        let found = self.ranges.range(..=address).next_back();
        found.is_some_and(|(start, size)| {
            let end = (address - start).checked_add(bytes as u64);
            end.is_some_and(|end| end <= *size)
        })
    }

    /// Reads bytes; returns `false`, and changes nothing, unless one range contains them.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        if self.ranges.is_empty() || !self.contains(address, bytes.len()) {
            return false;
        }
        let mut at = address;
        for part in parts(address, bytes.len()) {
            let place = at as usize;
            let target = &mut bytes[(at - address) as usize..][..part];
            // SAFETY: the range is readable memory, as promised to `add`. The pointers are aligned, and
            // accesses are atomic, as the host may access the memory at the same time.
            unsafe {
                match part {
                    8 => target.copy_from_slice(
                        &AtomicU64::from_ptr(place as *mut u64)
                            .load(Ordering::Relaxed)
                            .to_le_bytes(),
                    ),
                    4 => target.copy_from_slice(
                        &AtomicU32::from_ptr(place as *mut u32)
                            .load(Ordering::Relaxed)
                            .to_le_bytes(),
                    ),
                    2 => target.copy_from_slice(
                        &AtomicU16::from_ptr(place as *mut u16)
                            .load(Ordering::Relaxed)
                            .to_le_bytes(),
                    ),
                    _ => target[0] = AtomicU8::from_ptr(place as *mut u8).load(Ordering::Relaxed),
                }
            }
            at += part as u64;
        }
        true
    }

    /// Writes bytes; returns `false`, and changes nothing, unless one range contains them.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> bool {
        if self.ranges.is_empty() || !self.contains(address, bytes.len()) {
            return false;
        }
        let mut at = address;
        for part in parts(address, bytes.len()) {
            let place = at as usize;
            let source = &bytes[(at - address) as usize..][..part];
            let mut word = [0; 8];
            word[..part].copy_from_slice(source);
            let word = u64::from_le_bytes(word);
            // SAFETY: as in `read`; the memory is writable, too.
            unsafe {
                match part {
                    8 => AtomicU64::from_ptr(place as *mut u64).store(word, Ordering::Relaxed),
                    4 => {
                        AtomicU32::from_ptr(place as *mut u32).store(word as u32, Ordering::Relaxed)
                    }
                    2 => {
                        AtomicU16::from_ptr(place as *mut u16).store(word as u16, Ordering::Relaxed)
                    }
                    _ => AtomicU8::from_ptr(place as *mut u8).store(word as u8, Ordering::Relaxed),
                }
            }
            at += part as u64;
        }
        true
    }
}

/// Sizes of the aligned words of at most 8 bytes that a range consists of.
fn parts(address: u64, bytes: usize) -> impl Iterator<Item = usize> {
    let mut at = address;
    let end = address + bytes as u64;
    std::iter::from_fn(move || {
        let left = end - at;
        let part =
            [8, 4, 2, 1].into_iter().find(|size| *size <= left && at.is_multiple_of(*size))?;
        at += part;
        Some(part as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_added_ranges_are_accessed() {
        let mut words = [0u64; 4];
        let start = words.as_mut_ptr() as u64;
        let mut map = HostMemory::default();
        assert!(!map.write(start, &[1]) && !map.read(start, &mut [0]));
        // SAFETY: the first 20 bytes of `words`, which outlives the map.
        assert!(unsafe { map.add(start, 20) });
        // SAFETY: never added, as both overlap.
        assert!(unsafe { !map.add(start + 19, 1) && !map.add(start - 4, 5) && !map.add(0, 1) });
        let bytes: Vec<u8> = (1..=11).collect();
        assert!(map.write(start + 5, &bytes));
        let mut found = [0; 13];
        assert!(map.read(start + 4, &mut found));
        assert_eq!(found[..], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0]);
        assert_eq!(words[1] & 0xff, 4);
        assert!(!map.write(start + 17, &[0; 4]) && !map.read(start + 20, &mut [0]));
        assert!(!map.read(u64::MAX, &mut [0]));
        assert!(map.remove(start) && !map.remove(start) && !map.read(start, &mut [0]));
    }
}
