//! Branches reach 32768 words; where that is too little, islands stand on the way: branches that
//! go further.
//!
//! Islands stand in pools between the code of two instructions, best where control does not come
//! anyway; else a branch leads around the pool. A branch that does not reach gets an island as
//! far towards its target as it reaches, or one that others to the same target have. Each round
//! moves code a little, so rounds repeat until all branches reach. What the islands of a round
//! add is small against [`MARGIN`], so that few rounds do.

use super::LayoutError;
use super::addresses::StreamAddresses;
use super::stream::{CodeStream, IslandSeam, Spot, distance};
use crate::flow::{IndexVec, InstIndex};
use flipwave_isa::Pc;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that a branch reaches, rounded down: 15 bits of words.
pub(super) const REACH: u64 = (1 << 15) * 4 - 8;

/// Bytes that a new island stays away from the end of a branch's reach.
pub(super) const MARGIN: u64 = 4096;

/// Rounds after which there is no hope.
const ROUNDS: usize = 512;

/// The distance in words that gfx1010's branches get wrong.
const OFFSET_3F: i16 = 0x3f;

/// Where a branch is.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    /// At a position of the stream, or in old text.
    Spot(Spot),
    /// Among the islands before a position: its offset from their beginning, in bytes.
    Pool(usize, u64),
}

/// A branch and the way it takes. Islands are branches, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    /// Where it is.
    pub at: At,
    /// Its word, the distance zero.
    pub word: u32,
    /// Where it leads in the end.
    pub to: Spot,
    /// The island that it goes to first.
    pub via: Option<usize>,
    /// The site whose trampoline needs it.
    pub site: Option<InstIndex>,
}

/// Islands before a position.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IslandPool {
    /// Whether it begins with a branch around it.
    pub jumps: bool,
    /// Its bytes, the branch around it included.
    pub size: u64,
}

/// Addresses at which all branches reach.
#[derive(Debug, Default)]
pub(super) struct Reach {
    pub addresses: StreamAddresses,
    /// Those that were there, then the islands.
    pub hops: Vec<Hop>,
    /// By position.
    pub pools: BTreeMap<usize, IslandPool>,
    /// Positions with a word of padding before them.
    padded: BTreeSet<usize>,
    /// Islands by where they lead in the end.
    leading_to: BTreeMap<Spot, Vec<usize>>,
    /// Addresses of words in old text that islands may take.
    slots: BTreeSet<u64>,
}

/// What a target's branches are like.
#[derive(Clone, Copy, Debug)]
pub(super) struct BranchEncoding {
    /// `s_branch`, its distance zero.
    pub word: u32,
    /// Whether a distance of [`OFFSET_3F`] goes wrong.
    pub offset_3f_bug: bool,
}

/// A branch that there is no way for.
struct Stop {
    site: Option<InstIndex>,
    from: u64,
    to: u64,
}

/// Finds addresses from `base` on at which all branches reach. `slots` are words of old text that
/// islands may take.
///
/// # Errors
/// [`LayoutError::OutOfReach`]; [`LayoutError::Sites`] for branches that sites need.
pub(super) fn reach(
    base: u64,
    stream: &CodeStream,
    hops: Vec<Hop>,
    slots: BTreeSet<u64>,
    branches: BranchEncoding,
    pcs: &IndexVec<InstIndex, Pc>,
) -> Result<Reach, LayoutError> {
    let mut reach = Reach { hops, slots, ..Reach::default() };
    let quiet: Vec<IslandSeam> = stream.seams.iter().filter(|seam| !seam.falls).copied().collect();
    let seams = IslandSeams { all: &stream.seams, quiet: &quiet };
    for _ in 0..ROUNDS {
        reach.addresses = StreamAddresses::new(
            base,
            stream,
            reach.padded.iter().copied(),
            reach.pools.iter().map(|(position, pool)| (*position, pool.size)),
        );
        match reach.round(&seams, branches) {
            Round::Settled => return Ok(reach),
            Round::Changed => {}
            Round::Stopped(stops) => return Err(refusal(stops, pcs)),
        }
    }
    Err(LayoutError::Unsettled { rounds: ROUNDS })
}

fn refusal(stops: Vec<Stop>, pcs: &IndexVec<InstIndex, Pc>) -> LayoutError {
    let mut sites = BTreeMap::new();
    for Stop { site, from, to } in stops {
        let Some(pc) = site.map(|site| pcs[site]) else {
            return LayoutError::OutOfReach { from: Pc(from), to: Pc(to) };
        };
        sites.entry(pc).or_insert_with(|| {
            format!("a branch at {from:#x} does not reach {to:#x}, and nothing stands between")
        });
    }
    LayoutError::Sites(sites.into_iter().collect())
}

/// Places for islands.
struct IslandSeams<'a> {
    all: &'a [IslandSeam],
    /// Those that control does not come to.
    quiet: &'a [IslandSeam],
}

enum Round {
    Settled,
    Changed,
    Stopped(Vec<Stop>),
}

impl Reach {
    /// Gives each branch that does not reach an island, and those islands islands.
    fn round(&mut self, seams: &IslandSeams<'_>, branches: BranchEncoding) -> Round {
        let mut stops = Vec::new();
        let mut changed = false;
        let mut index = 0;
        while let Some(&hop) = self.hops.get(index) {
            let from = self.address(hop.at);
            let to = self.destination(&hop);
            match (distance(from, to), hop.at) {
                (Some(OFFSET_3F), At::Spot(Spot::Position(position))) if branches.offset_3f_bug => {
                    changed |= self.padded.insert(position + 4);
                }
                (Some(OFFSET_3F), At::Pool(position, _)) if branches.offset_3f_bug => {
                    changed = true;
                    self.pools.entry(position).or_default().size += 4;
                }
                (Some(words), _) if words != OFFSET_3F || !branches.offset_3f_bug => {}
                _ => {
                    changed = true;
                    let via = self.island(seams, &hop, from, branches.word);
                    if via.is_none() {
                        stops.push(Stop { site: hop.site, from, to });
                    }
                    self.hops[index].via = via;
                }
            }
            index += 1;
        }
        match (stops.is_empty(), changed) {
            (false, _) => Round::Stopped(stops),
            (true, true) => Round::Changed,
            (true, false) => Round::Settled,
        }
    }

    /// Address of a branch.
    pub fn address(&self, at: At) -> u64 {
        match at {
            At::Spot(spot) => self.addresses.of(spot),
            At::Pool(position, offset) => self.addresses.pool(position) + offset,
        }
    }

    /// Where a branch goes next.
    pub fn destination(&self, hop: &Hop) -> u64 {
        match hop.via {
            Some(island) => self.address(self.hops[island].at),
            None => self.addresses.of(hop.to),
        }
    }

    /// An island on the way of a branch: one that is there already, or a new one.
    fn island(
        &mut self,
        seams: &IslandSeams<'_>,
        hop: &Hop,
        from: u64,
        word: u32,
    ) -> Option<usize> {
        let to = self.addresses.of(hop.to);
        let ahead = to > from;
        let is_on_way = |at: u64| {
            at.abs_diff(from) <= REACH - MARGIN
                && if ahead { from < at && at < to } else { to < at && at < from }
        };
        let is_far = |at: u64| at.abs_diff(from) >= REACH / 2;
        let known = self.leading_to.get(&hop.to).into_iter().flatten().copied();
        let nearest = known
            .filter_map(|index| {
                let at = self.address(self.hops[index].at);
                is_on_way(at).then_some((at.abs_diff(to), at, index))
            })
            .min();
        if let Some((rest, at, index)) = nearest
            && (rest <= REACH - MARGIN || is_far(at))
        {
            return Some(index);
        }
        let quiet = self.farthest(seams.quiet, from, ahead).filter(|(_, at)| is_far(*at));
        let seam = quiet
            .filter(|(_, at)| is_on_way(*at))
            .or_else(|| self.farthest(seams.all, from, ahead).filter(|(_, at)| is_on_way(*at)));
        let slot = self.farthest_slot(from, ahead).filter(|at| is_on_way(*at));
        let at = match (seam, slot) {
            (Some((seam, at)), slot)
                if slot.is_none_or(|slot| slot.abs_diff(from) <= at.abs_diff(from)) =>
            {
                self.in_pool(seam)
            }
            (_, slot) => {
                let slot = slot?;
                self.slots.remove(&slot);
                At::Spot(Spot::Address(slot))
            }
        };
        let index = self.hops.len();
        self.hops.push(Hop { at, word, to: hop.to, via: None, site: hop.site });
        self.leading_to.entry(hop.to).or_default().push(index);
        Some(index)
    }

    /// A place for another island in the pool at a seam.
    fn in_pool(&mut self, seam: IslandSeam) -> At {
        let around = if seam.falls { 4 } else { 0 };
        let pool =
            self.pools.entry(seam.at).or_insert(IslandPool { jumps: seam.falls, size: around });
        let at = At::Pool(seam.at, pool.size);
        pool.size += 4;
        at
    }

    /// The word of old text that is farthest from an address within reach.
    fn farthest_slot(&self, from: u64, ahead: bool) -> Option<u64> {
        if ahead {
            self.slots.range(..=from.saturating_add(REACH - MARGIN)).next_back().copied()
        } else {
            self.slots.range(from.saturating_sub(REACH - MARGIN)..).next().copied()
        }
    }

    /// The seam that is farthest from an address within reach.
    fn farthest(&self, seams: &[IslandSeam], from: u64, ahead: bool) -> Option<(IslandSeam, u64)> {
        let address = |seam: &IslandSeam| self.addresses.pool(seam.at);
        let found = if ahead {
            let limit = from.saturating_add(REACH - MARGIN);
            seams.get(seams.partition_point(|seam| address(seam) <= limit).checked_sub(1)?)
        } else {
            let limit = from.saturating_sub(REACH - MARGIN);
            seams.get(seams.partition_point(|seam| address(seam) < limit))
        };
        found.map(|seam| (*seam, address(seam)))
    }
}
