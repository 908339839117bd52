//! Sets of bytes of device memory.

use flipwave_device::Address;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem;
use std::ops::Range;
use std::sync::Arc;

/// Bytes per line.
pub const LINE: u64 = 64;

/// A line of 64 bytes: its address divided by [`LINE`], and a mask with a bit for each byte in the
/// set.
pub type Line = [u64; 2];

/// Lines per page: sets are split into parts at page boundaries.
const PAGE_LINES: u64 = 1 << 12;

/// A set of bytes of device memory.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ByteSet {
    /// The lines with bytes in the set, ascending, in parts whose boundaries depend only on these
    /// lines.
    parts: Vec<Part>,
}

/// A non-empty run of lines of a set, ascending. Sets with equal lines can share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part(Arc<[Line]>);

impl ByteSet {
    /// Creates the set of the bytes of some runs, each given by its first byte and the number of
    /// bytes, truncated at the end of the address space.
    pub fn of_runs(runs: impl IntoIterator<Item = (Address, u64)>) -> ByteSet {
        let mut set = ByteSetBuilder::default();
        for (start, bytes) in runs {
            lines_of(start.0, bytes).for_each(|line| set.insert_line(line));
        }
        set.build()
    }

    /// Returns `true` if the set contains a byte.
    pub fn contains(&self, address: Address) -> bool {
        Masks::of(self).get(address.0 / LINE) >> (address.0 % LINE) & 1 != 0
    }

    /// Returns `true` if the two sets have a byte in common.
    pub fn intersects(&self, other: &ByteSet) -> bool {
        let mut others = Masks::of(other);
        self.lines().any(|[line, mask]| mask & others.get(line) != 0)
    }

    /// Number of bytes in the set.
    pub fn len(&self) -> u64 {
        self.lines().map(|[_, mask]| u64::from(mask.count_ones())).sum()
    }

    /// Returns `true` if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Maximal runs of consecutive bytes, by ascending address: first byte and number of bytes.
    pub fn runs(&self) -> Vec<(Address, u64)> {
        let mut runs: Vec<(Address, u64)> = Vec::new();
        for [line, mask] in self.lines() {
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

    /// Lines with bytes in the set, and their masks, ascending.
    pub fn lines(&self) -> impl Iterator<Item = Line> {
        self.parts.iter().flat_map(Part::lines)
    }

    /// Parts of the set.
    #[inline]
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }
}

/// Builds the union of sets.
impl<'a> FromIterator<&'a ByteSet> for ByteSet {
    fn from_iter<I: IntoIterator<Item = &'a ByteSet>>(sets: I) -> ByteSet {
        let mut union = ByteSetBuilder::default();
        for set in sets {
            set.lines().for_each(|line| union.insert_line(line));
        }
        union.build()
    }
}

impl Part {
    /// Minimum number of lines of a part, except for the last one of a set.
    const FEW: usize = 32;

    /// Lines of the part.
    pub fn lines(&self) -> impl Iterator<Item = Line> {
        self.0.iter().copied()
    }

    /// Numbers of the first and the last line.
    pub fn ends(&self) -> [u64; 2] {
        let number = |line: Option<&Line>| line.map_or(0, |[number, _]| *number);
        [number(self.0.first()), number(self.0.last())]
    }

    /// Address that identifies a shared part.
    pub fn identity(&self) -> *const Line {
        self.0.as_ptr()
    }
}

/// Hashes all words at once, which is faster than line by line.
impl Hash for Part {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_flattened().hash(state);
    }
}

/// Deduplicated parts of sets, many of which are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedParts(FxHashSet<Part>);

impl SharedParts {
    /// Makes sets share equal parts. A part that several sets share already is looked up once.
    pub fn share<'a>(&mut self, sets: impl IntoIterator<Item = &'a mut ByteSet>) {
        let mut known = FxHashMap::default();
        for part in sets.into_iter().flat_map(|set| &mut set.parts) {
            let same = known.entry(part.identity()).or_insert_with(|| match self.0.get(part) {
                Some(same) => same.clone(),
                None => {
                    self.0.insert(part.clone());
                    part.clone()
                }
            });
            part.clone_from(same);
        }
    }

    /// Approximate host memory in bytes.
    pub fn host_bytes(&self) -> u64 {
        let lines: usize = self.0.iter().map(|part| part.0.len()).sum();
        // Overhead of an allocation, and of the entry.
        const OWN: usize = 4 * size_of::<usize>() + size_of::<Part>();
        (lines * size_of::<Line>() + self.0.len() * OWN) as u64
    }
}

/// Looks up the masks of a set's lines, in ascending order.
pub(crate) struct Masks<'a> {
    /// Remaining lines of the current part.
    part: &'a [Line],
    /// Remaining parts.
    rest: &'a [Part],
}

impl<'a> Masks<'a> {
    #[inline]
    pub fn of(set: &'a ByteSet) -> Masks<'a> {
        Masks { part: &[], rest: &set.parts }
    }

    /// Mask of a line. Lines before an earlier request read as empty.
    #[inline]
    pub fn get(&mut self, line: u64) -> u64 {
        if self.part.last().is_none_or(|[last, _]| *last < line) {
            let skipped = self.rest.partition_point(|part| part.ends()[1] < line);
            let Some((part, rest)) = self.rest[skipped..].split_first() else { return 0 };
            (self.part, self.rest) = (&part.0, rest);
        }
        // The line is mostly one of the next few; it is far away if the set has many more lines
        // than are requested.
        let near = self.part.iter().take(8).position(|[number, _]| *number >= line);
        let skipped =
            near.unwrap_or_else(|| self.part.partition_point(|[number, _]| *number < line));
        self.part = &self.part[skipped..];
        self.part.first().filter(|[number, _]| *number == line).map_or(0, |[_, mask]| *mask)
    }
}

/// A set under construction.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ByteSetBuilder {
    /// Masks of lines whose bytes were inserted as ranges; never zero.
    masks: FxHashMap<u64, u64>,
    /// Pages of lines that were inserted as lines.
    pages: Vec<Page>,
    /// Index in the pages by page number.
    places: FxHashMap<u64, usize>,
    /// Index of the page that was inserted to last.
    last: usize,
}

/// Lines of a page.
#[derive(Clone, PartialEq, Eq)]
struct Page {
    number: u64,
    /// The lines, in any order.
    lines: Vec<Line>,
    /// Number of lines that remained after they were last sorted.
    settled: usize,
}

impl ByteSetBuilder {
    /// Adds `bytes` bytes from `start`, truncated at the end of the address space.
    #[inline]
    pub fn insert(&mut self, start: Address, bytes: u64) {
        self.insert_each(lines_of(start.0, bytes));
    }

    /// Adds lines with nonempty masks, in the form that [`ByteSetBuilder::insert_without`] finds
    /// quickly.
    #[inline]
    pub fn insert_each(&mut self, lines: impl IntoIterator<Item = Line>) {
        for [line, mask] in lines {
            *self.masks.entry(line).or_default() |= mask;
        }
    }

    /// Adds the bytes of a line that are not in another set.
    #[inline]
    pub fn insert_without(&mut self, [line, mask]: Line, other: &ByteSetBuilder) {
        let rest = mask & !other.mask(line);
        if rest != 0 {
            self.insert_line([line, rest]);
        }
    }

    /// Adds a line with a nonempty mask; fastest in ascending order.
    #[inline(always)]
    pub fn insert_line(&mut self, line: Line) {
        let number = line[0] / PAGE_LINES;
        if self.pages.get(self.last).is_none_or(|last| last.number != number) {
            self.turn_to(number);
        }
        self.pages[self.last].insert(line);
    }

    #[inline(never)]
    fn turn_to(&mut self, number: u64) {
        self.last = *self.places.entry(number).or_insert_with(|| {
            let lines = Vec::with_capacity(Page::ROOM);
            self.pages.push(Page { number, lines, settled: 0 });
            self.pages.len() - 1
        });
    }

    /// Mask of a line; fast if its page has no bytes that were inserted as lines.
    fn mask(&self, line: u64) -> u64 {
        let page = self.places.get(&(line / PAGE_LINES)).map(|place| &self.pages[*place]);
        let lines = page.into_iter().flat_map(|page| &page.lines);
        let masks = lines.filter(|[number, _]| *number == line).map(|[_, mask]| *mask);
        masks.chain(self.masks.get(&line).copied()).fold(0, |all, mask| all | mask)
    }

    /// Builds the set.
    pub fn build(mut self) -> ByteSet {
        for (line, mask) in mem::take(&mut self.masks) {
            self.insert_line([line, mask]);
        }
        self.pages.sort_unstable_by_key(|page| page.number);
        let (mut parts, mut part) = (Vec::new(), Vec::new());
        for page in &mut self.pages {
            page.settle();
            part.append(&mut page.lines);
            if part.len() >= Part::FEW {
                parts.push(Part(part[..].into()));
                part.clear();
            }
        }
        if !part.is_empty() {
            parts.push(Part(part.into()));
        }
        ByteSet { parts }
    }
}

impl Page {
    /// Initial capacity in lines.
    const ROOM: usize = 16;
    /// Number of unsorted lines after which the lines are sorted.
    const LOOSE: usize = PAGE_LINES as usize;

    #[inline(always)]
    fn insert(&mut self, line: Line) {
        self.lines.push(line);
        if self.lines.len() > 2 * self.settled + Page::LOOSE {
            self.settle();
        }
    }

    /// Sorts the lines in ascending order and merges duplicates.
    fn settle(&mut self) {
        if !self.lines.is_sorted_by(|[line, _], [next, _]| line < next) {
            let in_page = |line: u64| (line % PAGE_LINES) as usize;
            let mut known = [0_u64; PAGE_LINES as usize / 64];
            for [line, _] in &self.lines {
                known[in_page(*line) / 64] |= 1 << (line % 64);
            }
            // Index of each line in the result.
            let mut places = [0_u16; PAGE_LINES as usize];
            let mut settled = Vec::with_capacity(self.lines.len());
            for (word, first) in known.into_iter().zip((self.number * PAGE_LINES..).step_by(64)) {
                for line in bits_of(word).map(|bit| first + bit as u64) {
                    places[in_page(line)] = settled.len() as u16;
                    settled.push([line, 0]);
                }
            }
            for [line, mask] in &self.lines {
                settled[usize::from(places[in_page(*line)])][1] |= mask;
            }
            self.lines = settled;
        }
        self.settled = self.lines.len();
    }
}

/// Lines of the bytes from `start` on, truncated at the end of the address space. `start` is an
/// address, or an offset from the start of a line.
#[inline]
pub fn lines_of(start: u64, bytes: u64) -> impl Iterator<Item = Line> {
    let end = start.saturating_add(bytes);
    let mut at = start;
    std::iter::from_fn(move || {
        let count = end.checked_sub(at).filter(|left| *left > 0)?.min(LINE - at % LINE);
        let line = line_of(at, count);
        at += count;
        Some(line)
    })
}

/// Line of the `bytes` bytes at `start`, at least one, which must lie in one line.
#[inline]
pub fn line_of(start: u64, bytes: u64) -> Line {
    [start / LINE, u64::MAX >> (LINE - bytes) << (start % LINE)]
}

/// Numbers of the set bits, ascending.
#[inline]
pub fn bits_of(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        bit
    })
}

/// Runs of set bits, from the lowest on.
fn runs_of(mut mask: u64) -> impl Iterator<Item = Range<u32>> {
    std::iter::from_fn(move || {
        let start = mask.trailing_zeros();
        let bits = mask.checked_shr(start)?.trailing_ones();
        // The carry clears the run; if it overflows the word, no bits remain.
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
