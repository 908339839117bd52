//! Sets of bytes of device memory.

use flipwave_device::Address;
use rustc_hash::FxHashMap;
use std::fmt;
use std::ops::Range;

/// Bytes of a line.
pub const LINE: u64 = 64;

/// A line of 64 bytes, by its address divided by [`LINE`], and which of its bytes are in a set: a bit
/// each.
pub type Line = (u64, u64);

/// A set of bytes of device memory.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ByteSet {
    /// The lines that have some, ascending.
    lines: Vec<Line>,
}

impl ByteSet {
    /// The set of the bytes of some runs, each given by its first byte and the number of bytes: as far
    /// as the address space goes.
    pub fn of_runs(runs: impl IntoIterator<Item = (Address, u64)>) -> ByteSet {
        let runs = runs.into_iter();
        ByteSet::of_lines(runs.flat_map(|(start, bytes)| lines_of(start.0, bytes)).collect())
    }

    /// The set of lines in any order, none of them without bytes.
    fn of_lines(mut lines: Vec<Line>) -> ByteSet {
        settle(&mut lines);
        ByteSet { lines }
    }

    /// Whether a byte is one of the set.
    pub fn contains(&self, address: Address) -> bool {
        let line = self.lines.binary_search_by_key(&(address.0 / LINE), |(number, _)| *number);
        line.is_ok_and(|index| self.lines[index].1 >> (address.0 % LINE) & 1 != 0)
    }

    /// Whether the two sets have a byte in common.
    pub fn intersects(&self, other: &ByteSet) -> bool {
        self.beside(other).any(|(_, mask, others)| mask & others != 0)
    }

    /// The lines of this set, each with its own bytes and those of another set.
    pub(crate) fn beside<'a>(
        &'a self,
        other: &'a ByteSet,
    ) -> impl Iterator<Item = (u64, u64, u64)> + 'a {
        let mut rest = &other.lines[..];
        self.lines.iter().map(move |(number, mask)| {
            // Mostly it is one of the next few; it is far where the other set has many more lines.
            let near = rest.iter().take(8).position(|(own, _)| own >= number);
            let skipped = near.unwrap_or_else(|| rest.partition_point(|(own, _)| own < number));
            rest = &rest[skipped..];
            let others = rest.first().filter(|(own, _)| own == number).map_or(0, |(_, mask)| *mask);
            (*number, *mask, others)
        })
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.lines.iter().map(|(_, mask)| u64::from(mask.count_ones())).sum()
    }

    /// Whether it has no byte.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Bytes of the host that it takes, about.
    pub(crate) fn host_bytes(&self) -> u64 {
        (self.lines.capacity() * size_of::<Line>()) as u64
    }

    /// The longest runs of consecutive bytes, by ascending address: first byte and number of bytes.
    pub fn runs(&self) -> Vec<(Address, u64)> {
        let mut runs: Vec<(Address, u64)> = Vec::new();
        for (line, mask) in &self.lines {
            for Range { start, end } in runs_of(*mask) {
                let (start, bytes) = (line * LINE + u64::from(start), u64::from(end - start));
                match runs.last_mut() {
                    Some((first, length)) if first.0 + *length == start => *length += bytes,
                    _ => runs.push((Address(start), bytes)),
                }
            }
        }
        runs
    }

    /// The lines that have bytes, with their masks, ascending.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line> {
        self.lines.iter().copied()
    }
}

/// The union of sets: all at once, as each that is added by itself would have all lines sorted again.
impl<'a> FromIterator<&'a ByteSet> for ByteSet {
    fn from_iter<I: IntoIterator<Item = &'a ByteSet>>(sets: I) -> ByteSet {
        ByteSet::of_lines(sets.into_iter().flat_map(ByteSet::lines).collect())
    }
}

/// A set that grows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ByteSetBuilder {
    /// The masks of lines whose bytes came one by one; never zero.
    masks: FxHashMap<u64, u64>,
    /// Lines that came as such, in any order.
    lines: Vec<Line>,
    /// How many of these were left when they were last settled.
    settled: usize,
}

impl ByteSetBuilder {
    /// So many lines may come more than once before they are settled.
    const LOOSE: usize = 1 << 12;

    /// Adds the `bytes` bytes from `start` on, as far as the address space goes.
    pub fn insert(&mut self, start: Address, bytes: u64) {
        for (line, mask) in lines_of(start.0, bytes) {
            *self.masks.entry(line).or_default() |= mask;
        }
    }

    /// Adds lines, none of them without bytes, so that [`ByteSetBuilder::insert_lines_without`] finds them
    /// fast.
    pub fn insert_each(&mut self, lines: impl Iterator<Item = Line>) {
        for (line, mask) in lines {
            *self.masks.entry(line).or_default() |= mask;
        }
    }

    /// Adds lines, as [`ByteSetBuilder::insert_lines`] does, without the bytes of another set.
    pub fn insert_lines_without(
        &mut self,
        lines: impl Iterator<Item = Line>,
        other: &ByteSetBuilder,
    ) {
        let rest = lines.map(|(line, mask)| (line, mask & !other.mask(line)));
        self.insert_lines(rest.filter(|(_, mask)| *mask != 0));
    }

    /// Adds lines, none of them without bytes, best in ascending order.
    pub fn insert_lines(&mut self, lines: impl Iterator<Item = Line>) {
        self.lines.extend(lines);
        if self.lines.len() > 2 * self.settled + ByteSetBuilder::LOOSE {
            settle(&mut self.lines);
            self.settled = self.lines.len();
        }
    }

    /// The bytes of a line: found fast where none came by lines.
    fn mask(&self, line: u64) -> u64 {
        let masks = self.lines.iter().filter(|(own, _)| *own == line).map(|(_, mask)| *mask);
        masks.chain(self.masks.get(&line).copied()).fold(0, |all, own| all | own)
    }

    /// The set.
    pub fn build(self) -> ByteSet {
        let ByteSetBuilder { masks, mut lines, .. } = self;
        lines.extend(masks);
        let mut set = ByteSet::of_lines(lines);
        set.lines.shrink_to_fit();
        set
    }
}

/// The lines of the bytes from one on, as far as the address space goes: an address, or an offset from where
/// a line begins.
pub fn lines_of(start: u64, bytes: u64) -> impl Iterator<Item = Line> {
    let end = start.saturating_add(bytes);
    let mut at = start;
    std::iter::from_fn(move || {
        let count = end.checked_sub(at).filter(|left| *left > 0)?.min(LINE - at % LINE);
        let line = (at / LINE, u64::MAX >> (LINE - count) << (at % LINE));
        at += count;
        Some(line)
    })
}

/// Brings lines into ascending order, each once. Where they are in order for long stretches, which most
/// are, a stable sort takes next to no time.
fn settle(lines: &mut Vec<Line>) {
    if lines.is_sorted_by(|(number, _), (next, _)| number < next) {
        return;
    }
    lines.sort_by_key(|(number, _)| *number);
    lines.dedup_by(|(number, mask), before| {
        let is_same = *number == before.0;
        before.1 |= if is_same { *mask } else { 0 };
        is_same
    });
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

impl fmt::Debug for ByteSetBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.clone().build().fmt(f)
    }
}

#[cfg(test)]
mod tests;
