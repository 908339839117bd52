//! Device memory accessed by each workgroup of a dispatch, and dependencies between workgroups.

use crate::byte_set::{ByteSet, ByteSetBuilder, LINE, Masks, Part, SharedParts};
use flipwave_device::{Dim3, Statistics};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Executed instructions and accessed bytes of a workgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Number among the resident workgroups, which decides the location of its private memory.
    pub slot: usize,
    /// Execution statistics.
    pub statistics: Statistics,
    /// Bytes read, except those of the private memory that the workgroup had written itself.
    /// Instruction fetches do not count.
    pub read: ByteSet,
    /// Bytes written outside the private memory.
    pub written: ByteSet,
    /// Bytes written in the private memory. A later workgroup may use the same private memory, and
    /// finds the values that this one left.
    pub private: ByteSet,
    /// `true` if the workgroup used a resource of global wave sync.
    pub uses_global_sync: bool,
}

impl Footprint {
    /// Number of bytes written, including private memory.
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

/// The footprint of a resident workgroup, with the fields of a [`Footprint`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FootprintBuilder {
    /// See [`Footprint::slot`].
    pub slot: usize,
    /// See [`Footprint::statistics`].
    pub statistics: Statistics,
    /// See [`Footprint::read`].
    pub read: ByteSetBuilder,
    /// See [`Footprint::written`].
    pub written: ByteSetBuilder,
    /// See [`Footprint::private`].
    pub private: ByteSetBuilder,
    /// See [`Footprint::uses_global_sync`].
    pub uses_global_sync: bool,
}

impl FootprintBuilder {
    /// Builds the footprint.
    pub fn build(self) -> Footprint {
        let FootprintBuilder { slot, statistics, read, written, private, uses_global_sync } = self;
        let [read, written, private] = [read, written, private].map(ByteSetBuilder::build);
        Footprint { slot, statistics, read, written, private, uses_global_sync }
    }
}

/// The footprints of a dispatch's workgroups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprints {
    workgroups: BTreeMap<Dim3, Footprint>,
    /// Deduplicated parts of the sets.
    parts: SharedParts,
    /// Workgroups that have started but not ended.
    under_way: BTreeMap<Dim3, FootprintBuilder>,
}

impl Footprints {
    /// Returns the footprint of a workgroup that has ended, or whose dispatch has ended.
    pub fn get(&self, workgroup: Dim3) -> Option<&Footprint> {
        self.workgroups.get(&workgroup)
    }

    /// Footprints of the started workgroups of a dispatch that has ended, ordered by position.
    pub fn iter(&self) -> impl Iterator<Item = (Dim3, &Footprint)> {
        self.workgroups.iter().map(|(position, footprint)| (*position, footprint))
    }

    /// Returns `true` if [`Footprints::dependent`] is empty.
    pub fn independent(&self) -> bool {
        self.dependent().is_empty()
    }

    /// Workgroups that depend on others: one of them reads or writes a byte that another writes,
    /// writes one that another reads, or takes part in global wave sync. Private memory that
    /// workgroups use one after the other counts only if one of them reads bytes that it has not
    /// written.
    pub fn dependent(&self) -> Vec<Dim3> {
        self.dependent_in(&self.union())
    }

    /// Computes [`Footprints::dependent`] with a given [`Footprints::union`].
    pub fn dependent_in(&self, union: &FootprintUnion) -> Vec<Dim3> {
        let depends = |footprint: &Footprint| union.meets(footprint, footprint);
        self.iter()
            .filter(|(_, footprint)| depends(footprint))
            .map(|(position, _)| position)
            .collect()
    }

    /// Approximate host memory in bytes.
    pub fn host_bytes(&self) -> u64 {
        let parts = |footprint: &Footprint| {
            footprint.sets().map(|set| set.parts().len()).iter().sum::<usize>()
        };
        let size = |footprint| size_of::<Footprint>() + parts(footprint) * size_of::<Part>();
        self.parts.host_bytes() + self.workgroups.values().map(size).sum::<usize>() as u64
    }

    /// Approximate host memory in bytes for device memory that is shared with a state from before
    /// the dispatch and written by it: such memory is copied in parts.
    pub fn bytes_copied(&self) -> u64 {
        const PART: u64 = 256 << 10;
        let sets =
            self.workgroups.values().flat_map(|footprint| [&footprint.written, &footprint.private]);
        let parts = sets.flat_map(ByteSet::lines).map(|[line, _]| line / (PART / LINE));
        parts.collect::<FxHashSet<u64>>().len() as u64 * PART
    }

    /// Union of all footprints.
    pub fn union(&self) -> FootprintUnion {
        let mut union = FootprintUnion::default();
        union.add(self);
        union
    }

    /// Footprint of a resident workgroup.
    #[inline]
    pub fn entry(&mut self, workgroup: Dim3, slot: usize) -> &mut FootprintBuilder {
        let new = || FootprintBuilder { slot, ..FootprintBuilder::default() };
        self.under_way.entry(workgroup).or_insert_with(new)
    }

    /// Adds the ended workgroups of `others`.
    pub fn absorb(&mut self, others: Footprints) {
        self.add(others.workgroups);
    }

    /// Ends a workgroup.
    pub fn end(&mut self, workgroup: Dim3) {
        let builder = self.under_way.remove(&workgroup);
        self.add(builder.map(|builder| (workgroup, builder.build())));
    }

    /// Ends the dispatch.
    pub fn end_all(&mut self) {
        let under_way = std::mem::take(&mut self.under_way);
        self.add(under_way.into_iter().map(|(workgroup, builder)| (workgroup, builder.build())));
    }

    fn add(&mut self, workgroups: impl IntoIterator<Item = (Dim3, Footprint)>) {
        let mut workgroups: Vec<(Dim3, Footprint)> = workgroups.into_iter().collect();
        self.parts.share(workgroups.iter_mut().flat_map(|(_, footprint)| footprint.sets_mut()));
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

/// The combined footprints of a dispatch's workgroups.
#[derive(Clone, Debug, Default)]
pub struct FootprintUnion {
    read: Shared,
    written: Shared,
    private: Shared,
}

impl FootprintUnion {
    /// Adds the footprints of more workgroups.
    pub fn add(&mut self, footprints: &Footprints) {
        let Footprints { workgroups, .. } = footprints;
        self.read.add(workgroups.values().map(|footprint| &footprint.read));
        self.written.add(workgroups.values().map(|footprint| &footprint.written));
        self.private.add(workgroups.values().map(|footprint| &footprint.private));
    }

    /// Returns `true` if a workgroup depends on others when its accesses change from `recorded`,
    /// which is part of this union, to `actual`.
    pub fn meets(&self, recorded: &Footprint, actual: &Footprint) -> bool {
        let read = |bytes| self.read.meets(&recorded.read, bytes);
        let written = |bytes| self.written.meets(&recorded.written, bytes);
        let private = |bytes| self.private.meets(&recorded.private, bytes);
        recorded.uses_global_sync
            || actual.uses_global_sync
            || written(&actual.read)
            || private(&actual.read)
            || read(&actual.written)
            || written(&actual.written)
            || private(&actual.written)
            || read(&actual.private)
            || written(&actual.private)
    }
}

/// Bytes in several sets: for each line the bytes in at least one set, and in at least two.
#[derive(Clone, Debug, Default)]
struct Shared {
    pages: BTreeMap<u64, Box<Page>>,
}

/// Lines of a page: sets mostly contain neighbouring lines.
type Page = [[u64; 2]; PAGE as usize];
const PAGE: u64 = 64;

impl Shared {
    fn add<'a>(&mut self, sets: impl Iterator<Item = &'a ByteSet>) {
        // A part that sets share is visited once.
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

    /// Returns `true` if a set other than `excluded` contains a byte of `bytes`.
    fn meets(&self, excluded: &ByteSet, bytes: &ByteSet) -> bool {
        let has_pages = |part: &&Part| {
            let [first, last] = part.ends().map(|line| line / PAGE);
            self.pages.range(first..=last).next().is_some()
        };
        let (mut excluded, mut current) = (Masks::of(excluded), None::<(u64, Option<&Page>)>);
        bytes.parts().iter().filter(has_pages).flat_map(Part::lines).any(|[line, mask]| {
            let number = line / PAGE;
            let page = match current {
                Some((known, page)) if known == number => page,
                _ => self.pages.get(&number).map(|page| &**page),
            };
            current = Some((number, page));
            let [once, twice] = page.map_or([0; 2], |page| page[(line % PAGE) as usize]);
            mask & (twice | once & !excluded.get(line)) != 0
        })
    }
}

#[cfg(test)]
mod tests;
