//! The way of state through a block.

use super::Moves;
use super::openings::Openings;
use crate::registers::{Move, set, sgprs};
use flipwave_isa::{Register, RegisterSet, Sgpr};

/// How often each SGPR is open: those that are open at most places are left the least.
pub type Openness = [usize; 256];

/// Where words go in a block, and how they come there.
pub struct Course<'a> {
    pub openings: &'a Openings,
    pub openness: &'a Openness,
    /// Where each word must be after the block; anywhere if nothing comes after it.
    pub end: Option<&'a [Sgpr]>,
}

impl Course<'_> {
    /// The moves before each instruction, counted from the first of the block, with state that
    /// arrives in these registers. `None` where there are too few.
    pub fn moves(&self, arrival: &[Sgpr]) -> Option<Vec<(u32, Moves)>> {
        let mut places = arrival.to_vec();
        let mut all = Vec::new();
        let count = self.openings.across.len();
        for at in 0..count {
            let next = match self.end {
                Some(end) if at + 1 == count => end.to_vec(),
                _ => self.next(at, &places)?,
            };
            if next == places {
                continue;
            }
            let spare = self.openings.before[at];
            let moves = Move::all_at_once(&places, &next, spare)?;
            let waits = self.openings.waits[at].clone();
            all.push((at as u32, Moves { waits, moves }));
            places = next;
        }
        Some(all)
    }

    /// Where words are across an instruction: where they were, if they can stay.
    fn next(&self, at: usize, places: &[Sgpr]) -> Option<Vec<Sgpr>> {
        let across = self.openings.across[at];
        let mut next = places.to_vec();
        for word in 0..next.len() {
            if across.contains(Register::Sgpr(next[word])) {
                continue;
            }
            let open = across.difference(set(&next));
            let goal = self.end.map(|end| end[word]);
            next[word] = self.longest(at, open, goal)?;
        }
        Some(next)
    }

    /// The register that stays open for the longest from an instruction on (L. A. Belady, "A study
    /// of replacement algorithms for a virtual-storage computer", 1966). Of several the goal, or
    /// the one that is open at most places.
    fn longest(&self, at: usize, open: RegisterSet, goal: Option<Sgpr>) -> Option<Sgpr> {
        let mut longest = open;
        for across in &self.openings.across[at..] {
            let longer = longest.intersection(*across);
            if longer.is_empty() {
                break;
            }
            longest = longer;
        }
        most_open(longest, self.openness, goal)
    }
}

/// Of some SGPRs the one that is wanted, else the one that is open at most places, the lowest of
/// them.
pub fn most_open(of: RegisterSet, openness: &Openness, wanted: Option<Sgpr>) -> Option<Sgpr> {
    let rank = |sgpr: &Sgpr| {
        let count = openness[usize::from(sgpr.0)];
        (Some(*sgpr) == wanted, count, std::cmp::Reverse(sgpr.0))
    };
    sgprs(of).max_by_key(rank)
}
