//! Registers of a split live range within a block.

use super::free::FreeRegisters;
use super::scope::MoveGroup;
use crate::registers::{Move, set, sgprs};
use flipwave_isa::{Register, RegisterSet, Sgpr};

/// Number of instructions across which each SGPR is free. Words in frequently free SGPRs move least often.
pub type FreeCounts = [usize; 256];

/// Computes the moves within a block.
pub struct BlockMoves<'a> {
    /// Free registers in the block.
    pub free: &'a FreeRegisters,
    /// Number of instructions across which each SGPR is free.
    pub counts: &'a FreeCounts,
    /// Registers of the words at the end of the block; `None` if the program ends there.
    pub end: Option<&'a [Sgpr]>,
}

impl BlockMoves<'_> {
    /// The moves with the index of the instruction in the block that they precede, for words in the
    /// registers `start` at the start of the block. `None` if there are too few registers.
    pub fn moves(&self, start: &[Sgpr]) -> Option<Vec<(u32, MoveGroup)>> {
        let mut current = start.to_vec();
        let mut all = Vec::new();
        let count = self.free.across.len();
        for at in 0..count {
            let next = match self.end {
                Some(end) if at + 1 == count => end.to_vec(),
                _ => self.next(at, &current)?,
            };
            if next == current {
                continue;
            }
            let spare = self.free.before[at];
            let moves = Move::all_at_once(&current, &next, spare)?;
            let waits = self.free.waits[at].clone();
            all.push((at as u32, MoveGroup { waits, moves }));
            current = next;
        }
        Some(all)
    }

    /// Registers of the words across an instruction: the current ones if they are free, otherwise others.
    fn next(&self, at: usize, current: &[Sgpr]) -> Option<Vec<Sgpr>> {
        let across = self.free.across[at];
        let mut next = current.to_vec();
        for word in 0..next.len() {
            if across.contains(Register::Sgpr(next[word])) {
                continue;
            }
            let candidates = across.difference(set(&next));
            let preferred = self.end.map(|end| end[word]);
            next[word] = self.free_longest(at, candidates, preferred)?;
        }
        Some(next)
    }

    /// The candidate that is free for the longest time, starting at an instruction (L. A. Belady, "A study
    /// of replacement algorithms for a virtual-storage computer", 1966). Ties go to the preferred register,
    /// then to the one that is free most often.
    fn free_longest(
        &self,
        at: usize,
        candidates: RegisterSet,
        preferred: Option<Sgpr>,
    ) -> Option<Sgpr> {
        let mut longest = candidates;
        for across in &self.free.across[at..] {
            let longer = longest.intersection(*across);
            if longer.is_empty() {
                break;
            }
            longest = longer;
        }
        most_often_free(longest, self.counts, preferred)
    }
}

/// The preferred SGPR if it is a candidate, otherwise the candidate that is free most often; ties go to the
/// lowest.
pub fn most_often_free(
    candidates: RegisterSet,
    counts: &FreeCounts,
    preferred: Option<Sgpr>,
) -> Option<Sgpr> {
    let rank = |sgpr: &Sgpr| {
        let count = counts[usize::from(sgpr.0)];
        (Some(*sgpr) == preferred, count, std::cmp::Reverse(sgpr.0))
    };
    sgprs(candidates).max_by_key(rank)
}
