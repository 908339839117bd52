//! Sets of bytes of device memory.

use flipwave_device::Address;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a line.
pub const LINE: u64 = 64;

/// A line of 64 bytes, by its address divided by [`LINE`], and which of its bytes are in a set: a bit
/// each.
pub type Line = [u64; 2];

/// Lines of a chapter: sets are cut into parts where one begins.
const CHAPTER: u64 = 1 << 12;

/// A set of bytes of device memory.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ByteSet {
    /// The lines that have some, ascending, in parts that begin where the same lines have them.
    parts: Vec<Part>,
}

/// Lines of a set that follow one another, one at least, ascending. Sets that have the same lines can share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part(Arc<[Line]>);

impl ByteSet {
    /// The set of the bytes of some runs, each given by its first byte and the number of bytes: as far
    /// as the address space goes.
    pub fn of_runs(runs: impl IntoIterator<Item = (Address, u64)>) -> ByteSet {
        let mut set = ByteSetBuilder::default();
        for (start, bytes) in runs {
            lines_of(start.0, bytes).for_each(|line| set.insert_line(line));
        }
        set.build()
    }

    /// Whether a byte is one of the set.
    pub fn contains(&self, address: Address) -> bool {
        Masks::of(self).get(address.0 / LINE) >> (address.0 % LINE) & 1 != 0
    }

    /// Whether the two sets have a byte in common.
    pub fn intersects(&self, other: &ByteSet) -> bool {
        let mut others = Masks::of(other);
        self.lines().any(|[line, mask]| mask & others.get(line) != 0)
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.lines().map(|[_, mask]| u64::from(mask.count_ones())).sum()
    }

    /// Whether it has no byte.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The longest runs of consecutive bytes, by ascending address: first byte and number of bytes.
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

    /// The lines that have bytes, with their masks, ascending.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line> {
        self.parts.iter().flat_map(Part::lines)
    }

    /// The parts whose lines these are.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }
}

/// The union of sets.
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
    /// Lines that a part has at least, but for the last one of a set.
    const FEW: usize = 32;

    /// Its lines.
    pub fn lines(&self) -> impl Iterator<Item = Line> {
        self.0.iter().copied()
    }

    /// The numbers of its first and its last line.
    pub fn ends(&self) -> [u64; 2] {
        let number = |line: Option<&Line>| line.map_or(0, |[number, _]| *number);
        [number(self.0.first()), number(self.0.last())]
    }

    /// The same for parts that are shared, and for no others.
    pub fn identity(&self) -> *const Line {
        self.0.as_ptr()
    }
}

/// All words at once, which is faster than one line after another.
impl Hash for Part {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_flattened().hash(state);
    }
}

/// Parts of sets, each once, of which many sets have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SharedParts(FxHashSet<Part>);

impl SharedParts {
    /// Has sets share these parts. What the sets share already is looked up once.
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

    /// Bytes of the host that they take, about.
    pub fn host_bytes(&self) -> u64 {
        let lines: usize = self.0.iter().map(|part| part.0.len()).sum();
        // What an allocation has besides, and the place here.
        const OWN: usize = 4 * size_of::<usize>() + size_of::<Part>();
        (lines * size_of::<Line>() + self.0.len() * OWN) as u64
    }
}

/// The masks of a set's lines, to those who ask for lines in ascending order.
pub(super) struct Masks<'a> {
    /// What is left of the part in which the last line is.
    part: &'a [Line],
    /// The parts after it.
    rest: &'a [Part],
}

impl<'a> Masks<'a> {
    pub fn of(set: &'a ByteSet) -> Masks<'a> {
        Masks { part: &[], rest: &set.parts }
    }

    /// The bytes that the set has of a line, which is none before one that was asked for.
    pub fn get(&mut self, line: u64) -> u64 {
        if self.part.last().is_none_or(|[last, _]| *last < line) {
            let skipped = self.rest.partition_point(|part| part.ends()[1] < line);
            let Some((part, rest)) = self.rest[skipped..].split_first() else { return 0 };
            (self.part, self.rest) = (&part.0, rest);
        }
        // Mostly it is one of the next few; it is far where the set has many more lines than are asked for.
        let near = self.part.iter().take(8).position(|[own, _]| *own >= line);
        let skipped = near.unwrap_or_else(|| self.part.partition_point(|[own, _]| *own < line));
        self.part = &self.part[skipped..];
        self.part.first().filter(|[own, _]| *own == line).map_or(0, |[_, mask]| *mask)
    }
}

/// A set that grows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ByteSetBuilder {
    /// The masks of lines whose bytes came one by one; never zero.
    masks: FxHashMap<u64, u64>,
    /// Lines that came as such.
    chapters: Vec<Chapter>,
    /// Where those of each chapter are, by its number.
    places: FxHashMap<u64, usize>,
    /// Where those are to which lines were added last.
    last: usize,
}

/// Lines of a chapter.
#[derive(Clone, PartialEq, Eq)]
struct Chapter {
    number: u64,
    /// In any order.
    lines: Vec<Line>,
    /// How many of these were left when they were last settled.
    settled: usize,
}

impl ByteSetBuilder {
    /// Adds the `bytes` bytes from `start` on, as far as the address space goes.
    pub fn insert(&mut self, start: Address, bytes: u64) {
        self.insert_each(lines_of(start.0, bytes));
    }

    /// Adds lines, none of them without bytes, so that [`ByteSetBuilder::insert_without`] finds them fast.
    pub fn insert_each(&mut self, lines: impl IntoIterator<Item = Line>) {
        for [line, mask] in lines {
            *self.masks.entry(line).or_default() |= mask;
        }
    }

    /// Adds a line without the bytes of another set.
    pub fn insert_without(&mut self, [line, mask]: Line, other: &ByteSetBuilder) {
        let rest = mask & !other.mask(line);
        if rest != 0 {
            self.insert_line([line, rest]);
        }
    }

    /// Adds a line, not one without bytes, best in ascending order.
    // Inlined, so that a line is written once, into its place: it is read as a whole, which waits for what was
    // written in parts.
    #[inline(always)]
    pub fn insert_line(&mut self, line: Line) {
        let number = line[0] / CHAPTER;
        if self.chapters.get(self.last).is_none_or(|last| last.number != number) {
            self.turn_to(number);
        }
        self.chapters[self.last].insert(line);
    }

    #[inline(never)]
    fn turn_to(&mut self, number: u64) {
        self.last = *self.places.entry(number).or_insert_with(|| {
            let lines = Vec::with_capacity(Chapter::ROOM);
            self.chapters.push(Chapter { number, lines, settled: 0 });
            self.chapters.len() - 1
        });
    }

    /// The bytes of a line: found fast where none came by lines.
    fn mask(&self, line: u64) -> u64 {
        let chapter = self.places.get(&(line / CHAPTER)).map(|place| &self.chapters[*place]);
        let lines = chapter.into_iter().flat_map(|own| &own.lines);
        let masks = lines.filter(|[own, _]| *own == line).map(|[_, mask]| *mask);
        masks.chain(self.masks.get(&line).copied()).fold(0, |all, own| all | own)
    }

    /// The set.
    pub fn build(mut self) -> ByteSet {
        for (line, mask) in mem::take(&mut self.masks) {
            self.insert_line([line, mask]);
        }
        self.chapters.sort_unstable_by_key(|own| own.number);
        let (mut parts, mut part) = (Vec::new(), Vec::new());
        for chapter in &mut self.chapters {
            chapter.settle();
            part.append(&mut chapter.lines);
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

impl Chapter {
    /// Lines that it has room for from the beginning.
    const ROOM: usize = 16;
    /// So many lines may come more than once before they are settled.
    const LOOSE: usize = CHAPTER as usize;

    #[inline(always)]
    fn insert(&mut self, line: Line) {
        self.lines.push(line);
        if self.lines.len() > 2 * self.settled + Chapter::LOOSE {
            self.settle();
        }
    }

    /// Brings the lines into ascending order, each once.
    fn settle(&mut self) {
        if !self.lines.is_sorted_by(|[line, _], [next, _]| line < next) {
            let in_chapter = |line: u64| (line % CHAPTER) as usize;
            let mut known = [0_u64; CHAPTER as usize / 64];
            for [line, _] in &self.lines {
                known[in_chapter(*line) / 64] |= 1 << (line % 64);
            }
            // Where each goes.
            let mut places = [0_u16; CHAPTER as usize];
            let mut settled = Vec::with_capacity(self.lines.len());
            for (word, first) in known.into_iter().zip((self.number * CHAPTER..).step_by(64)) {
                for line in bits_of(word).map(|bit| first + bit as u64) {
                    places[in_chapter(line)] = settled.len() as u16;
                    settled.push([line, 0]);
                }
            }
            for [line, mask] in &self.lines {
                settled[usize::from(places[in_chapter(*line)])][1] |= mask;
            }
            self.lines = settled;
        }
        self.settled = self.lines.len();
    }
}

/// The lines of the bytes from one on, as far as the address space goes: an address, or an offset from where
/// a line begins.
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

/// So many bytes from one on, one at least, which lie in one line.
pub(super) fn line_of(start: u64, bytes: u64) -> Line {
    [start / LINE, u64::MAX >> (LINE - bytes) << (start % LINE)]
}

/// The numbers of the bits that are set, ascending.
pub(super) fn bits_of(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize);
        mask &= mask.wrapping_sub(1);
        bit
    })
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
