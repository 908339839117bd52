//! Sets of bytes of device memory.

use flipwave_device::Address;
use rustc_hash::FxHashMap;
use std::fmt;
use std::ops::Range;

/// Bytes of a line.
pub const LINE: u64 = 64;

/// A set of bytes of device memory, kept as a mask for each line of 64 bytes that has some.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ByteSet {
    /// By the line's address divided by [`LINE`]; never zero.
    masks: FxHashMap<u64, u64>,
}

impl ByteSet {
    /// Adds the `bytes` bytes from `start` on, as far as the address space goes.
    pub fn insert(&mut self, start: Address, bytes: u64) {
        let end = start.0.saturating_add(bytes);
        let mut at = start.0;
        while at < end {
            let line = at / LINE;
            let count = (end - at).min(LINE - at % LINE);
            *self.masks.entry(line).or_default() |= u64::MAX >> (LINE - count) << (at % LINE);
            at += count;
        }
    }

    /// Makes room for so many more lines.
    pub(crate) fn reserve(&mut self, lines: usize) {
        self.masks.reserve(lines);
    }

    /// Adds bytes of the line at an address: those of whose bits one is set.
    pub(crate) fn insert_of_line(&mut self, line: Address, bits: u64) {
        if bits != 0 {
            *self.masks.entry(line.0 / LINE).or_default() |= bits;
        }
    }

    /// Adds the bytes of another set.
    pub fn unite(&mut self, other: &ByteSet) {
        for (line, mask) in other.masks() {
            *self.masks.entry(line).or_default() |= mask;
        }
    }

    /// Whether a byte is one of the set.
    pub fn contains(&self, address: Address) -> bool {
        self.mask(address.0 / LINE) >> (address.0 % LINE) & 1 != 0
    }

    /// Whether the two sets have a byte in common.
    pub fn intersects(&self, other: &ByteSet) -> bool {
        let (few, many) =
            if self.masks.len() <= other.masks.len() { (self, other) } else { (other, self) };
        few.masks().any(|(line, mask)| mask & many.mask(line) != 0)
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.masks.values().map(|mask| u64::from(mask.count_ones())).sum()
    }

    /// Whether it has no byte.
    pub fn is_empty(&self) -> bool {
        self.masks.is_empty()
    }

    /// Bytes of the host that it takes, about.
    pub(crate) fn host_bytes(&self) -> u64 {
        // A line has its address and its mask; a table is filled to seven eighths at most.
        self.masks.capacity() as u64 * 2 * size_of::<u64>() as u64
    }

    /// The longest runs of consecutive bytes, by ascending address: first byte and number of bytes.
    pub fn runs(&self) -> Vec<(Address, u64)> {
        let mut lines: Vec<_> = self.masks().collect();
        lines.sort_unstable();
        let mut runs: Vec<(Address, u64)> = Vec::new();
        for (line, mask) in lines {
            for Range { start, end } in runs_of(mask) {
                let (start, bytes) = (line * LINE + u64::from(start), u64::from(end - start));
                match runs.last_mut() {
                    Some((first, length)) if first.0 + *length == start => *length += bytes,
                    _ => runs.push((Address(start), bytes)),
                }
            }
        }
        runs
    }

    /// The lines that have bytes, with their masks, in no order.
    pub(crate) fn masks(&self) -> impl Iterator<Item = (u64, u64)> {
        self.masks.iter().map(|(line, mask)| (*line, *mask))
    }

    /// The bytes of a line.
    pub(crate) fn mask(&self, line: u64) -> u64 {
        self.masks.get(&line).copied().unwrap_or_default()
    }
}

/// The runs of set bits, from the lowest on.
fn runs_of(mut mask: u64) -> impl Iterator<Item = Range<u32>> {
    std::iter::from_fn(move || {
        let start = mask.trailing_zeros();
        let bits = mask.checked_shr(start)?.trailing_ones();
        // The carry clears the run; where it leaves the word, nothing is left.
        mask &= mask.wrapping_add(1 << start);
        Some(start..start + bits)
    })
}

impl fmt::Debug for ByteSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.runs().into_iter().map(|(start, bytes)| start.0..start.0 + bytes);
        f.debug_set().entries(ranges).finish()
    }
}

#[cfg(test)]
mod tests;
