//! A copy of device memory as of the last recorded step, which is compared with memory to find changes.

use flipwave_device::{Address, Change};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

const PAGE: usize = 4096;

type Page = Box<[u8; PAGE]>;

/// A sparse copy of memory. Missing pages are zero.
#[derive(Default)]
pub struct ShadowMemory {
    pages: HashMap<u64, Page>,
    /// The end address of each mapping, by its start address.
    maps: BTreeMap<u64, u64>,
}

impl ShadowMemory {
    /// Updates the mappings to `now` and returns the changes.
    pub fn follow_maps(&mut self, now: Vec<Range<Address>>) -> Vec<Change> {
        let now: BTreeMap<u64, u64> =
            now.into_iter().map(|range| (range.start.0, range.end.0)).collect();
        let mut changes = Vec::new();
        for (start, end) in &self.maps {
            if now.get(start) != Some(end) {
                changes.push(Change::Unmap { address: Address(*start) });
                for page in start / PAGE as u64..end.div_ceil(PAGE as u64) {
                    self.pages.remove(&page);
                }
            }
        }
        for (start, end) in &now {
            if self.maps.get(start) != Some(end) {
                changes.push(Change::Map { address: Address(*start), bytes: end - start });
            }
        }
        self.maps = now;
        changes
    }

    /// Compares mapped memory in `range`, or all of it, with the copy; calls `changed` for each run of bytes
    /// that differ and updates the copy. `read` reads memory; `touched` returns the page numbers in a range
    /// that may be nonzero, and only those are compared.
    pub fn update(
        &mut self,
        range: Option<Range<u64>>,
        touched: impl Fn(Range<u64>) -> Vec<u64>,
        read: impl Fn(u64, &mut [u8]) -> bool,
        mut changed: impl FnMut(u64, &[u8]),
    ) {
        let range = range.unwrap_or(0..u64::MAX);
        let mut bytes = [0; PAGE];
        for (start, end) in &self.maps {
            let (start, end) = (range.start.max(*start), range.end.min(*end));
            if start >= end {
                continue;
            }
            for number in touched(start / PAGE as u64..end.div_ceil(PAGE as u64)) {
                let address = number * PAGE as u64;
                if !read(address, &mut bytes) {
                    continue;
                }
                let page = self.pages.entry(number).or_insert_with(|| Box::new([0; PAGE]));
                if **page == bytes {
                    continue;
                }
                for run in runs(&page[..], &bytes) {
                    changed(address + run.start as u64, &bytes[run]);
                }
                **page = bytes;
            }
        }
    }

    /// Updates a range of the copy from memory, without comparing.
    pub fn refresh(&mut self, address: u64, bytes: u64, read: impl Fn(u64, &mut [u8]) -> bool) {
        for (number, part) in parts(address, bytes) {
            let page = self.pages.entry(number).or_insert_with(|| Box::new([0; PAGE]));
            read(number * PAGE as u64 + part.start as u64, &mut page[part]);
        }
    }

    /// Copies a range within the copy, as a copy command does in memory.
    pub fn copy(&mut self, from: u64, to: u64, bytes: u64) {
        let mut moved = Vec::with_capacity(bytes as usize);
        for (number, part) in parts(from, bytes) {
            match self.pages.get(&number) {
                Some(page) => moved.extend_from_slice(&page[part]),
                None => moved.resize(moved.len() + part.len(), 0),
            }
        }
        let mut remaining = &moved[..];
        for (number, part) in parts(to, bytes) {
            let (content, following) = remaining.split_at(part.len());
            let page = self.pages.entry(number).or_insert_with(|| Box::new([0; PAGE]));
            page[part].copy_from_slice(content);
            remaining = following;
        }
    }
}

/// Splits a range at page boundaries: the page number and the range within the page of each part.
fn parts(address: u64, bytes: u64) -> impl Iterator<Item = (u64, Range<usize>)> {
    let size = PAGE as u64;
    let end = address + bytes;
    (address / size..end.div_ceil(size)).map(move |number| {
        let first = number * size;
        let start = address.max(first) - first;
        (number, start as usize..(end - first).min(size) as usize)
    })
}

/// The maximal runs of bytes that differ.
fn runs<'a>(before: &'a [u8], after: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
    let mut at = 0;
    std::iter::from_fn(move || {
        let differs = |index: &usize| before[*index] != after[*index];
        let start = (at..after.len()).find(differs)?;
        let end = (start..after.len()).find(|index| !differs(index)).unwrap_or(after.len());
        at = end;
        Some(start..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pages of memory at 0x1_0000.
    struct Memory(Vec<u8>);

    impl Memory {
        fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
            let start = (address - 0x1_0000) as usize;
            bytes.copy_from_slice(&self.0[start..start + bytes.len()]);
            true
        }
    }

    #[test]
    fn each_changed_byte_is_reported_once() {
        let mut memory = Memory(vec![0; 2 * PAGE]);
        let mut shadow = ShadowMemory::default();
        let mapped = || vec![Address(0x1_0000)..Address(0x1_2000)];
        let map = Change::Map { address: Address(0x1_0000), bytes: 0x2000 };
        assert_eq!(shadow.follow_maps(mapped()), [map]);
        let changes = |shadow: &mut ShadowMemory, memory: &Memory| {
            let mut changes = Vec::new();
            let read = |at, bytes: &mut [u8]| memory.read(at, bytes);
            shadow.update(
                None,
                |pages| pages.collect(),
                read,
                |at, bytes| {
                    changes.push((at, bytes.to_vec()));
                },
            );
            changes
        };
        memory.0[5..8].copy_from_slice(&[1, 2, 3]);
        memory.0[0x1009] = 4;
        let expected = [(0x1_0005, vec![1, 2, 3]), (0x1_1009, vec![4])];
        assert_eq!(changes(&mut shadow, &memory), expected);
        assert_eq!(changes(&mut shadow, &memory), []);
        memory.0[6] = 9;
        shadow.refresh(0x1_0006, 1, |at, bytes| memory.read(at, bytes));
        assert_eq!(changes(&mut shadow, &memory), []);
        assert_eq!(runs(&[0, 1, 2, 3, 4], &[0, 7, 7, 3, 9]).collect::<Vec<_>>(), [1..3, 4..5]);
    }

    #[test]
    fn copy_crosses_page_boundaries() {
        let memory = Memory((0..2 * PAGE).map(|index| index as u8).collect());
        let mut shadow = ShadowMemory::default();
        shadow.refresh(0x1_0000, 0x2000, |at, bytes| memory.read(at, bytes));
        shadow.copy(0x1_0ffe, 0x1_0010, 4);
        assert_eq!(shadow.pages[&0x10][0x10..0x14], [0xfe, 0xff, 0, 1]);
        shadow.copy(0x5000, 0x1_0010, 2);
        assert_eq!(shadow.pages[&0x10][0x10..0x12], [0, 0]);
    }

    #[test]
    fn unmapping_clears_pages() {
        let mut shadow = ShadowMemory::default();
        shadow.follow_maps(vec![Address(0x1_0000)..Address(0x1_1000)]);
        shadow.refresh(0x1_0000, 16, |_, bytes| {
            bytes.fill(7);
            true
        });
        shadow.follow_maps(Vec::new());
        assert!(shadow.pages.is_empty());
    }
}
