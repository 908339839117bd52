//! What each workgroup of a dispatch touches in device memory, and whether workgroups can tell
//! that others are there.

use super::byte_set::{ByteSet, ByteSetBuilder, LINE};
use super::bytes::LARGE;
use flipwave_device::{Dim3, Statistics};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// What a workgroup has executed and touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Its place among the workgroups under way, which decides where its private memory lies.
    pub slot: usize,
    /// What it has executed.
    pub statistics: Statistics,
    /// Bytes that it read, but for those of its private memory that it had written itself. The
    /// fetch of instructions does not count.
    pub read: ByteSet,
    /// Bytes that it wrote, but for those of its private memory.
    pub written: ByteSet,
    /// Bytes of its private memory that it wrote. A later workgroup may have the same private
    /// memory, and finds there what this one has left.
    pub private: ByteSet,
    /// Whether it used a resource of global wave sync.
    pub uses_global_sync: bool,
}

impl Footprint {
    /// How many bytes it wrote, private memory included.
    pub fn bytes_written(&self) -> u64 {
        self.written.len() + self.private.len()
    }
}

/// The footprint of a workgroup under way, with the fields of a [`Footprint`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FootprintBuilder {
    pub slot: usize,
    pub statistics: Statistics,
    pub read: ByteSetBuilder,
    pub written: ByteSetBuilder,
    pub private: ByteSetBuilder,
    pub uses_global_sync: bool,
}

impl FootprintBuilder {
    /// The footprint.
    pub fn build(self) -> Footprint {
        let FootprintBuilder { slot, statistics, read, written, private, uses_global_sync } = self;
        let [read, written, private] = [read, written, private].map(ByteSetBuilder::build);
        Footprint { slot, statistics, read, written, private, uses_global_sync }
    }
}

/// The footprints of the workgroups of a dispatch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprints {
    workgroups: BTreeMap<Dim3, Footprint>,
    /// Workgroups that have started, and not ended.
    under_way: BTreeMap<Dim3, FootprintBuilder>,
}

impl Footprints {
    /// The footprint of a workgroup that has ended, or whose dispatch has.
    pub fn get(&self, workgroup: Dim3) -> Option<&Footprint> {
        self.workgroups.get(&workgroup)
    }

    /// The workgroups that have started, in the order of their positions, of a dispatch that has ended.
    pub fn iter(&self) -> impl Iterator<Item = (Dim3, &Footprint)> {
        self.workgroups.iter().map(|(position, footprint)| (*position, footprint))
    }

    /// Whether no workgroup is one of [`Footprints::dependent`].
    pub fn independent(&self) -> bool {
        self.dependent().is_empty()
    }

    /// The workgroups that do not just execute beside the others: one of them reads or writes a
    /// byte that another writes, writes one that another reads, or takes part in global wave sync.
    /// Private memory that workgroups have one after the other counts only if one of them reads
    /// what it has not written.
    pub fn dependent(&self) -> Vec<Dim3> {
        self.dependent_in(&self.union())
    }

    /// The same, with [`Footprints::union`] given.
    pub fn dependent_in(&self, union: &FootprintUnion) -> Vec<Dim3> {
        let depends = |own: &Footprint| union.meets(own, own);
        self.iter().filter(|(_, own)| depends(own)).map(|(position, _)| position).collect()
    }

    /// Bytes of the host that they take, about.
    pub fn host_bytes(&self) -> u64 {
        let sets = |own: &Footprint| {
            [&own.read, &own.written, &own.private].map(ByteSet::host_bytes).iter().sum::<u64>()
        };
        self.workgroups.values().map(|own| size_of::<Footprint>() as u64 + sets(own)).sum()
    }

    /// Bytes of the host that memory takes, about, which is shared with a state from before the dispatch and
    /// then written: it is copied in parts.
    pub fn bytes_copied(&self) -> u64 {
        const PART: u64 = LARGE as u64;
        let sets = self.workgroups.values().flat_map(|own| [&own.written, &own.private]);
        let parts = sets.flat_map(ByteSet::lines).map(|(line, _)| line / (PART / LINE));
        parts.collect::<FxHashSet<u64>>().len() as u64 * PART
    }

    /// All footprints together.
    pub fn union(&self) -> FootprintUnion {
        let mut union = FootprintUnion::default();
        union.add(self);
        union
    }

    /// The footprint of a workgroup under way.
    pub(crate) fn entry(&mut self, workgroup: Dim3, slot: usize) -> &mut FootprintBuilder {
        let new = || FootprintBuilder { slot, ..FootprintBuilder::default() };
        self.under_way.entry(workgroup).or_insert_with(new)
    }

    /// Adds the workgroups of others that have ended.
    pub(crate) fn absorb(&mut self, others: Footprints) {
        self.workgroups.extend(others.workgroups);
    }

    /// A workgroup has ended.
    pub(crate) fn end(&mut self, workgroup: Dim3) {
        if let Some(own) = self.under_way.remove(&workgroup) {
            self.workgroups.insert(workgroup, own.build());
        }
    }

    /// The dispatch has ended.
    pub(crate) fn end_all(&mut self) {
        let under_way = std::mem::take(&mut self.under_way);
        self.workgroups.extend(under_way.into_iter().map(|(own, builder)| (own, builder.build())));
    }
}

impl FromIterator<(Dim3, Footprint)> for Footprints {
    fn from_iter<I: IntoIterator<Item = (Dim3, Footprint)>>(all: I) -> Footprints {
        Footprints { workgroups: all.into_iter().collect(), under_way: BTreeMap::new() }
    }
}

/// What the workgroups of a dispatch touch, taken together.
#[derive(Clone, Debug, Default)]
pub struct FootprintUnion {
    read: Shared,
    written: Shared,
    private: Shared,
}

impl FootprintUnion {
    /// Adds the footprints of other workgroups.
    pub(crate) fn add(&mut self, footprints: &Footprints) {
        for footprint in footprints.workgroups.values() {
            self.read.add(&footprint.read);
            self.written.add(&footprint.written);
            self.private.add(&footprint.private);
        }
    }

    /// Whether a workgroup whose footprint among these is `own` depends on others if it touches what
    /// `other` says instead.
    pub fn meets(&self, own: &Footprint, other: &Footprint) -> bool {
        let read = |bytes| self.read.meets(&own.read, bytes);
        let written = |bytes| self.written.meets(&own.written, bytes);
        let private = |bytes| self.private.meets(&own.private, bytes);
        own.uses_global_sync
            || other.uses_global_sync
            || written(&other.read)
            || private(&other.read)
            || read(&other.written)
            || written(&other.written)
            || private(&other.written)
            || read(&other.private)
            || written(&other.private)
    }
}

/// Bytes that several sets have: for each line those in one set at least, and in two.
#[derive(Clone, Debug, Default)]
struct Shared {
    pages: FxHashMap<u64, Box<Page>>,
}

/// The lines of a page: sets have many side by side.
type Page = [[u64; 2]; PAGE as usize];
const PAGE: u64 = 64;

impl Shared {
    fn add(&mut self, set: &ByteSet) {
        let mut lines = set.lines().peekable();
        while let Some((line, _)) = lines.peek() {
            let number = line / PAGE;
            let new = || Box::new([[0; 2]; PAGE as usize]);
            let page = self.pages.entry(number).or_insert_with(new);
            while let Some((line, mask)) = lines.next_if(|(line, _)| line / PAGE == number) {
                let [once, twice] = &mut page[(line % PAGE) as usize];
                *twice |= *once & mask;
                *once |= mask;
            }
        }
    }

    /// Whether another of the sets than `own` has a byte of `bytes`.
    fn meets(&self, own: &ByteSet, bytes: &ByteSet) -> bool {
        if self.pages.is_empty() {
            return false;
        }
        let mut current: Option<(u64, Option<&Page>)> = None;
        bytes.beside(own).any(|(line, mask, own)| {
            let number = line / PAGE;
            let page = match current {
                Some((known, page)) if known == number => page,
                _ => self.pages.get(&number).map(|page| &**page),
            };
            current = Some((number, page));
            let [once, twice] = page.map_or([0; 2], |page| page[(line % PAGE) as usize]);
            mask & (twice | once & !own) != 0
        })
    }
}

#[cfg(test)]
mod tests;
