//! Live-range splitting: if no register is free throughout a kernel, a value is moved between dead SGPRs,
//! and its register depends on the program point.
//!
//! A word is in one SGPR across each instruction. The SGPR is dead there, the instruction does not name
//! it, and no outstanding load writes it. On each control-flow edge, including calls and returns, the word
//! is in the same SGPR at the end of the first block and at the start of the second. Within a block, it
//! stays as long as possible, then moves to the SGPR that is free for the longest time, and finally to the
//! SGPR that the successors expect. `s_mov_b32` has no side effects, so moves are possible before any
//! instruction.
//!
//! Moves before an instruction run after all hooks before it: these hooks find a word in the old register,
//! hooks instead of and after the instruction in the new one.

mod block_moves;
mod edge_bundles;
mod free;
mod scope;
#[cfg(test)]
mod tests;

use crate::flow::{BlockEnd, BlockIndex, Disassembly, InstIndex};
use crate::point::{ProgramPoint, When};
use crate::registers::{set, sgprs};
use block_moves::{BlockMoves, FreeCounts, most_often_free};
use edge_bundles::EdgeBundles;
use flipwave_isa::{RegisterSet, Sgpr};
use free::FreeRegisters;
pub use scope::{MoveGroup, SplitScope};
use std::collections::BTreeMap;

/// A split live range of one or several words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitRange {
    /// Registers of the words at the start of each block.
    starts: BTreeMap<BlockIndex, Vec<Sgpr>>,
    /// Moves before instructions, after all hooks before them.
    moves: BTreeMap<InstIndex, MoveGroup>,
}

impl SplitRange {
    /// Finds a live range for a number of words; `None` if too few SGPRs are dead at some point.
    pub fn find(scope: &SplitScope<'_>, words: usize) -> Option<SplitRange> {
        let mut bundles = EdgeBundles::new(scope);
        let mut free_in: BTreeMap<usize, RegisterSet> = BTreeMap::new();
        let mut counts: FreeCounts = [0; 256];
        for at in scope.blocks() {
            let free = FreeRegisters::of(scope, at);
            let start = (bundles.start(at), free.at_start());
            let end = bundles.end(scope.program, at);
            let end = end.map(|bundle| (bundle, free.at_end()));
            for (bundle, registers) in [Some(start), end].into_iter().flatten() {
                let common = free_in.entry(bundle).or_insert(registers);
                *common = common.intersection(registers);
            }
            for sgpr in free.across.iter().flat_map(|across| sgprs(*across)) {
                counts[usize::from(sgpr.0)] += 1;
            }
        }
        let choose = |free: RegisterSet| {
            let mut chosen = Vec::new();
            for _ in 0..words {
                chosen.push(most_often_free(free.difference(set(&chosen)), &counts, None)?);
            }
            Some(chosen)
        };
        let chosen = free_in.into_iter().map(|(bundle, free)| Some((bundle, choose(free)?)));
        let chosen: BTreeMap<usize, Vec<Sgpr>> = chosen.collect::<Option<_>>()?;
        let mut range = SplitRange::default();
        for at in scope.blocks() {
            let free = FreeRegisters::of(scope, at);
            let start = &chosen[&bundles.start(at)];
            let end = bundles.end(scope.program, at);
            let end = end.map(|bundle| chosen[&bundle].as_slice());
            let block = BlockMoves { free: &free, counts: &counts, end };
            let first = scope.program.blocks[at].instructions.start;
            let moves = block.moves(start)?.into_iter();
            range.moves.extend(moves.map(|(offset, group)| (InstIndex(first.0 + offset), group)));
            range.starts.insert(at, start.clone());
        }
        Some(range)
    }

    /// All moves, by the instruction that they precede.
    pub fn moves(&self) -> impl Iterator<Item = (InstIndex, &MoveGroup)> {
        self.moves.iter().map(|(at, group)| (*at, group))
    }

    /// Register of each word at a program point; `None` outside the range.
    pub fn registers_at(&self, program: &Disassembly, point: ProgramPoint) -> Option<Vec<Sgpr>> {
        let ProgramPoint { at, when } = point;
        let index = program.block_of(at);
        let block = &program.blocks[index];
        let end = match when {
            When::Before => at,
            // After the return of the call.
            When::After if block.end == BlockEnd::Call && at == block.last() => {
                return self.starts.get(&block.successors.first()?.to).cloned();
            }
            When::After | When::Instead => at.next(),
        };
        let mut registers = self.starts.get(&index)?.clone();
        let passed = self.moves.range(block.instructions.start..end);
        for step in passed.flat_map(|(_, group)| &group.moves) {
            let moved = registers.iter_mut().filter(|register| **register == step.from);
            moved.for_each(|register| *register = step.to);
        }
        Some(registers)
    }
}
