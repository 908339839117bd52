//! Branch islands: a branch has a range of 32768 words; a branch to a target out of range goes to an
//! island, another branch on the way.
//!
//! Islands are placed in pools between the code of two instructions, preferably where control does not
//! fall through; otherwise, a branch skips the pool. A branch out of range uses an existing island for
//! its target, or a new one as close to the target as the range permits. New islands move code, so
//! rounds repeat until all branches are in range. The islands of a round are small compared to
//! [`MARGIN`], so a few rounds suffice.

use super::LayoutError;
use super::addresses::StreamAddresses;
use super::stream::{CodeStream, IslandSite, Location, distance};
use crate::flow::{IndexVec, InstIndex};
use flipwave_isa::Pc;
use std::collections::{BTreeMap, BTreeSet};

/// Range of a branch in bytes, rounded down: 15 bits of words.
pub(super) const REACH: u64 = (1 << 15) * 4 - 8;

/// Minimum distance in bytes of a new island from the end of the branch's range.
pub(super) const MARGIN: u64 = 4096;

/// Maximum number of rounds.
const ROUNDS: usize = 512;

/// The branch distance in words that gfx1010 executes incorrectly.
const OFFSET_3F: i16 = 0x3f;

/// Location of a branch.
#[derive(Clone, Copy, Debug)]
pub(super) enum HopLocation {
    /// A location in the stream or the old text.
    Fixed(Location),
    /// In the island pool before a position, at an offset in bytes.
    Pool(usize, u64),
}

/// A branch of the program or an island, which may go to its target through an island.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    /// Location of the branch.
    pub at: HopLocation,
    /// Its word, with a zero distance.
    pub word: u32,
    /// Final target.
    pub to: Location,
    /// The island that it goes to instead, as an index of hops.
    pub via: Option<usize>,
    /// The edited instruction whose trampoline needs it.
    pub site: Option<InstIndex>,
}

/// The islands before a position.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IslandPool {
    /// `true` if the pool starts with a branch that skips it.
    pub jumps: bool,
    /// Size in bytes, including this branch.
    pub size: u64,
}

/// Addresses and islands with which all branches are in range.
#[derive(Debug, Default)]
pub(super) struct Reach {
    pub addresses: StreamAddresses,
    /// The branches of the program, followed by the islands.
    pub hops: Vec<Hop>,
    /// Island pools by position.
    pub pools: BTreeMap<usize, IslandPool>,
    /// Positions preceded by a word of padding.
    padded: BTreeSet<usize>,
    /// Islands by final target.
    islands_to: BTreeMap<Location, Vec<usize>>,
    /// Addresses of unused words of the old text.
    slots: BTreeSet<u64>,
}

/// Encoding of branches on a target.
#[derive(Clone, Copy, Debug)]
pub(super) struct BranchEncoding {
    /// `s_branch` with a zero distance.
    pub word: u32,
    /// `true` if a distance of [`OFFSET_3F`] is executed incorrectly.
    pub offset_3f_bug: bool,
}

/// A branch that cannot reach its target.
struct Unreachable {
    site: Option<InstIndex>,
    from: u64,
    to: u64,
}

/// Assigns addresses starting at `base` with which all branches are in range. `slots` contains unused
/// words of the old text, which may hold islands.
///
/// # Errors
/// [`LayoutError::OutOfReach`], or [`LayoutError::Sites`] if only branches of trampolines are out of
/// range; [`LayoutError::Unsettled`].
pub(super) fn reach(
    base: u64,
    stream: &CodeStream,
    hops: Vec<Hop>,
    slots: BTreeSet<u64>,
    branches: BranchEncoding,
    pcs: &IndexVec<InstIndex, Pc>,
) -> Result<Reach, LayoutError> {
    let mut reach = Reach { hops, slots, ..Reach::default() };
    let sites = &stream.island_sites;
    let unreached: Vec<IslandSite> =
        sites.iter().filter(|site| !site.falls_through).copied().collect();
    let sites = IslandSites { all: sites, unreached: &unreached };
    for _ in 0..ROUNDS {
        reach.addresses = StreamAddresses::new(
            base,
            stream,
            reach.padded.iter().copied(),
            reach.pools.iter().map(|(position, pool)| (*position, pool.size)),
        );
        match reach.round(&sites, branches) {
            Round::Settled => return Ok(reach),
            Round::Changed => {}
            Round::Failed(unreachable) => return Err(refusal(unreachable, pcs)),
        }
    }
    Err(LayoutError::Unsettled { rounds: ROUNDS })
}

fn refusal(unreachable: Vec<Unreachable>, pcs: &IndexVec<InstIndex, Pc>) -> LayoutError {
    let mut sites = BTreeMap::new();
    for Unreachable { site, from, to } in unreachable {
        let Some(pc) = site.map(|site| pcs[site]) else {
            return LayoutError::OutOfReach { from: Pc(from), to: Pc(to) };
        };
        sites.entry(pc).or_insert_with(|| {
            format!(
                "a branch at {from:#x} cannot reach {to:#x}, and there is no space for an island"
            )
        });
    }
    LayoutError::Sites(sites.into_iter().collect())
}

/// Places for islands, by ascending position.
struct IslandSites<'a> {
    all: &'a [IslandSite],
    /// Places that control does not fall through to.
    unreached: &'a [IslandSite],
}

/// Result of a round.
enum Round {
    /// All branches are in range.
    Settled,
    /// Islands or padding were added.
    Changed,
    /// Some branches cannot reach their targets.
    Failed(Vec<Unreachable>),
}

impl Reach {
    /// Assigns an island to each branch and each new island that is out of range.
    fn round(&mut self, sites: &IslandSites<'_>, branches: BranchEncoding) -> Round {
        let mut unreachable = Vec::new();
        let mut changed = false;
        let mut index = 0;
        while let Some(&hop) = self.hops.get(index) {
            let from = self.address(hop.at);
            let to = self.destination(&hop);
            match (distance(from, to), hop.at) {
                (Some(OFFSET_3F), HopLocation::Fixed(Location::Position(position)))
                    if branches.offset_3f_bug =>
                {
                    changed |= self.padded.insert(position + 4);
                }
                (Some(OFFSET_3F), HopLocation::Pool(position, _)) if branches.offset_3f_bug => {
                    changed = true;
                    self.pools.entry(position).or_default().size += 4;
                }
                (Some(words), _) if words != OFFSET_3F || !branches.offset_3f_bug => {}
                _ => {
                    changed = true;
                    let via = self.island(sites, &hop, from, branches.word);
                    if via.is_none() {
                        unreachable.push(Unreachable { site: hop.site, from, to });
                    }
                    self.hops[index].via = via;
                }
            }
            index += 1;
        }
        if !unreachable.is_empty() {
            Round::Failed(unreachable)
        } else if changed {
            Round::Changed
        } else {
            Round::Settled
        }
    }

    /// Address of a branch.
    pub fn address(&self, at: HopLocation) -> u64 {
        match at {
            HopLocation::Fixed(location) => self.addresses.of(location),
            HopLocation::Pool(position, offset) => self.addresses.pool(position) + offset,
        }
    }

    /// Address that a branch goes to: its island or its target.
    pub fn destination(&self, hop: &Hop) -> u64 {
        match hop.via {
            Some(island) => self.address(self.hops[island].at),
            None => self.addresses.of(hop.to),
        }
    }

    /// An existing or a new island for a branch; `None` if there is no space in range.
    fn island(
        &mut self,
        sites: &IslandSites<'_>,
        hop: &Hop,
        from: u64,
        word: u32,
    ) -> Option<usize> {
        let to = self.addresses.of(hop.to);
        let ahead = to > from;
        let is_between = |at: u64| {
            at.abs_diff(from) <= REACH - MARGIN
                && if ahead { from < at && at < to } else { to < at && at < from }
        };
        let is_far = |at: u64| at.abs_diff(from) >= REACH / 2;
        let existing = self.islands_to.get(&hop.to).into_iter().flatten().copied();
        let nearest = existing
            .filter_map(|index| {
                let at = self.address(self.hops[index].at);
                is_between(at).then_some((at.abs_diff(to), at, index))
            })
            .min();
        if let Some((rest, at, index)) = nearest
            && (rest <= REACH - MARGIN || is_far(at))
        {
            return Some(index);
        }
        let unreached = self.farthest(sites.unreached, from, ahead).filter(|(_, at)| is_far(*at));
        let site = unreached
            .filter(|(_, at)| is_between(*at))
            .or_else(|| self.farthest(sites.all, from, ahead).filter(|(_, at)| is_between(*at)));
        let slot = self.farthest_slot(from, ahead).filter(|at| is_between(*at));
        let at = match (site, slot) {
            (Some((site, at)), slot)
                if slot.is_none_or(|slot| slot.abs_diff(from) <= at.abs_diff(from)) =>
            {
                self.add_to_pool(site)
            }
            (_, slot) => {
                let slot = slot?;
                self.slots.remove(&slot);
                HopLocation::Fixed(Location::Address(slot))
            }
        };
        let index = self.hops.len();
        self.hops.push(Hop { at, word, to: hop.to, via: None, site: hop.site });
        self.islands_to.entry(hop.to).or_default().push(index);
        Some(index)
    }

    /// Reserves space for an island in the pool at a site.
    fn add_to_pool(&mut self, site: IslandSite) -> HopLocation {
        let skip = if site.falls_through { 4 } else { 0 };
        let empty = IslandPool { jumps: site.falls_through, size: skip };
        let pool = self.pools.entry(site.at).or_insert(empty);
        let at = HopLocation::Pool(site.at, pool.size);
        pool.size += 4;
        at
    }

    /// The unused word of the old text that is farthest from an address, within range.
    fn farthest_slot(&self, from: u64, ahead: bool) -> Option<u64> {
        if ahead {
            self.slots.range(..=from.saturating_add(REACH - MARGIN)).next_back().copied()
        } else {
            self.slots.range(from.saturating_sub(REACH - MARGIN)..).next().copied()
        }
    }

    /// The island site that is farthest from an address, within range.
    fn farthest(&self, sites: &[IslandSite], from: u64, ahead: bool) -> Option<(IslandSite, u64)> {
        let address = |site: &IslandSite| self.addresses.pool(site.at);
        let found = if ahead {
            let limit = from.saturating_add(REACH - MARGIN);
            sites.get(sites.partition_point(|site| address(site) <= limit).checked_sub(1)?)
        } else {
            let limit = from.saturating_sub(REACH - MARGIN);
            sites.get(sites.partition_point(|site| address(site) < limit))
        };
        found.map(|site| (*site, address(site)))
    }
}
