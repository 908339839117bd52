//! What each workgroup of a dispatch touches in device memory, and whether workgroups can tell
//! that others are there.

use super::byte_set::{ByteSet, ByteSetBuilder, LINE, Masks, Part, SharedParts};
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

    fn sets(&self) -> [&ByteSet; 3] {
        [&self.read, &self.written, &self.private]
    }

    fn sets_mut(&mut self) -> [&mut ByteSet; 3] {
        [&mut self.read, &mut self.written, &mut self.private]
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
    /// The parts of their sets.
    parts: SharedParts,
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
        let parts = |own: &Footprint| own.sets().map(|set| set.parts().len()).iter().sum::<usize>();
        let own = |own| size_of::<Footprint>() + parts(own) * size_of::<Part>();
        self.parts.host_bytes() + self.workgroups.values().map(own).sum::<usize>() as u64
    }

    /// Bytes of the host that memory takes, about, which is shared with a state from before the dispatch and
    /// then written: it is copied in parts.
    pub fn bytes_copied(&self) -> u64 {
        const PART: u64 = LARGE as u64;
        let sets = self.workgroups.values().flat_map(|own| [&own.written, &own.private]);
        let parts = sets.flat_map(ByteSet::lines).map(|[line, _]| line / (PART / LINE));
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
        self.add(others.workgroups);
    }

    /// A workgroup has ended.
    pub(crate) fn end(&mut self, workgroup: Dim3) {
        let own = self.under_way.remove(&workgroup);
        self.add(own.map(|own| (workgroup, own.build())));
    }

    /// The dispatch has ended.
    pub(crate) fn end_all(&mut self) {
        let under_way = std::mem::take(&mut self.under_way);
        self.add(under_way.into_iter().map(|(workgroup, own)| (workgroup, own.build())));
    }

    fn add(&mut self, workgroups: impl IntoIterator<Item = (Dim3, Footprint)>) {
        let mut workgroups: Vec<(Dim3, Footprint)> = workgroups.into_iter().collect();
        self.parts.share(workgroups.iter_mut().flat_map(|(_, own)| own.sets_mut()));
        self.workgroups.extend(workgroups);
    }
}

impl FromIterator<(Dim3, Footprint)> for Footprints {
    fn from_iter<I: IntoIterator<Item = (Dim3, Footprint)>>(all: I) -> Footprints {
        let mut footprints = Footprints::default();
        footprints.add(all);
        footprints
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
        let Footprints { workgroups, .. } = footprints;
        self.read.add(workgroups.values().map(|own| &own.read));
        self.written.add(workgroups.values().map(|own| &own.written));
        self.private.add(workgroups.values().map(|own| &own.private));
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
    pages: BTreeMap<u64, Box<Page>>,
}

/// The lines of a page: sets have many side by side.
type Page = [[u64; 2]; PAGE as usize];
const PAGE: u64 = 64;

impl Shared {
    fn add<'a>(&mut self, sets: impl Iterator<Item = &'a ByteSet>) {
        // A part that sets share is looked through once.
        let mut parts = FxHashMap::default();
        for part in sets.flat_map(ByteSet::parts) {
            let known = parts.entry(part.identity());
            known.and_modify(|(_, is_shared)| *is_shared = true).or_insert((part, false));
        }
        for (part, is_shared) in parts.into_values() {
            let mut lines = part.lines().peekable();
            while let Some([line, _]) = lines.peek() {
                let number = line / PAGE;
                let new = || Box::new([[0; 2]; PAGE as usize]);
                let page = self.pages.entry(number).or_insert_with(new);
                while let Some([line, mask]) = lines.next_if(|[line, _]| line / PAGE == number) {
                    let [once, twice] = &mut page[(line % PAGE) as usize];
                    *twice |= if is_shared { mask } else { *once & mask };
                    *once |= mask;
                }
            }
        }
    }

    /// Whether another of the sets than `own` has a byte of `bytes`.
    fn meets(&self, own: &ByteSet, bytes: &ByteSet) -> bool {
        let has_pages = |part: &&Part| {
            let [first, last] = part.ends().map(|line| line / PAGE);
            self.pages.range(first..=last).next().is_some()
        };
        let (mut own, mut current) = (Masks::of(own), None::<(u64, Option<&Page>)>);
        bytes.parts().iter().filter(has_pages).flat_map(Part::lines).any(|[line, mask]| {
            let number = line / PAGE;
            let page = match current {
                Some((known, page)) if known == number => page,
                _ => self.pages.get(&number).map(|page| &**page),
            };
            current = Some((number, page));
            let [once, twice] = page.map_or([0; 2], |page| page[(line % PAGE) as usize]);
            mask & (twice | once & !own.get(line)) != 0
        })
    }
}

#[cfg(test)]
mod tests;
