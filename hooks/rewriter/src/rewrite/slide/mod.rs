//! State that slides: where no register is free all through a kernel, a value is moved from one
//! dead SGPR to the next, and where it lies depends on the point of the program.
//!
//! A word of state is in one SGPR from before an instruction to after it. The SGPR is dead there,
//! the instruction leaves it alone, and no load is going to deliver to it. Where control goes from
//! one block to others, the word lies in the same SGPR at the end of the one and at the beginnings
//! of the others; calls and returns are such ways, too. Within a block it stays as long as it can,
//! then moves to the SGPR that lets it stay the longest, and last to where the blocks after expect
//! it. `s_mov_b32` changes neither SCC nor anything else, so a move is possible before any
//! instruction.
//!
//! Between two instructions there are two points: hooks before an instruction find a word where it
//! was, hooks after and in place of it where it has moved to.

mod borders;
mod course;
mod openings;
#[cfg(test)]
mod tests;

use crate::dataflow::{Liveness, OutstandingLoads};
use crate::flow::{BlockEnd, BlockIndex, Disassembly, FunctionIndex, InstIndex};
use crate::point::{ProgramPoint, When};
use crate::registers::{Move, set, sgprs};
use borders::Borders;
use course::{Course, Openness, most_open};
use flipwave_isa::counter::Counter;
use flipwave_isa::{RegisterSet, Sgpr};
use openings::Openings;
use std::collections::BTreeMap;

/// Where state may slide.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// The code.
    pub program: &'a Disassembly,
    /// The functions that state must get through, with all that they call.
    pub functions: &'a [FunctionIndex],
    /// Its liveness.
    pub liveness: &'a Liveness<'a>,
    /// Its outstanding loads.
    pub loads: &'a OutstandingLoads,
    /// The SGPRs it may lie in where they are dead.
    pub registers: RegisterSet,
}

impl Ground<'_> {
    fn blocks(&self) -> impl Iterator<Item = BlockIndex> {
        let functions = self.functions.iter().map(|own| &self.program.functions[*own]);
        functions.flat_map(|function| function.blocks.iter())
    }
}

/// What happens to state before an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moves {
    /// What counters must come to first.
    pub waits: Vec<(Counter, u8)>,
    /// The moves, in this order.
    pub moves: Vec<Move>,
}

/// Where words of state are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slide {
    /// When control comes to a block.
    arrivals: BTreeMap<BlockIndex, Vec<Sgpr>>,
    /// How they change their places before an instruction, after all hooks before it.
    moves: BTreeMap<InstIndex, Moves>,
}

impl Slide {
    /// A way for a number of words all through the ground; `None` where some point has too few dead
    /// SGPRs.
    pub fn find(ground: &Ground<'_>, words: usize) -> Option<Slide> {
        let mut borders = Borders::of(ground);
        let mut open: BTreeMap<usize, RegisterSet> = BTreeMap::new();
        let mut openness: Openness = [0; 256];
        for at in ground.blocks() {
            let openings = Openings::of(ground, at);
            let arrival = (borders.arrival(at), openings.arrival());
            let departure = borders.departure(ground.program, at);
            let departure = departure.map(|class| (class, openings.departure()));
            for (class, own) in [Some(arrival), departure].into_iter().flatten() {
                let open = open.entry(class).or_insert(own);
                *open = open.intersection(own);
            }
            for sgpr in openings.across.iter().flat_map(|across| sgprs(*across)) {
                openness[usize::from(sgpr.0)] += 1;
            }
        }
        let meet = |open: RegisterSet| {
            let mut places = Vec::new();
            for _ in 0..words {
                places.push(most_open(open.difference(set(&places)), &openness, None)?);
            }
            Some(places)
        };
        let meetings = open.into_iter().map(|(class, open)| Some((class, meet(open)?)));
        let meetings: BTreeMap<usize, Vec<Sgpr>> = meetings.collect::<Option<_>>()?;
        let mut slide = Slide::default();
        for at in ground.blocks() {
            let openings = Openings::of(ground, at);
            let arrival = &meetings[&borders.arrival(at)];
            let departure = borders.departure(ground.program, at);
            let end = departure.map(|class| meetings[&class].as_slice());
            let course = Course { openings: &openings, openness: &openness, end };
            let first = ground.program.blocks[at].instructions.start;
            let moves = course.moves(arrival)?.into_iter();
            slide.moves.extend(moves.map(|(after, moves)| (InstIndex(first.0 + after), moves)));
            slide.arrivals.insert(at, arrival.clone());
        }
        Some(slide)
    }

    /// What happens before instructions.
    pub fn moves(&self) -> impl Iterator<Item = (InstIndex, &Moves)> {
        self.moves.iter().map(|(at, moves)| (*at, moves))
    }

    /// Where each word is for a hook at an instruction; `None` where state does not come.
    pub fn places(&self, program: &Disassembly, point: ProgramPoint) -> Option<Vec<Sgpr>> {
        let ProgramPoint { at, when } = point;
        let index = program.block_of(at);
        let block = &program.blocks[index];
        let end = match when {
            When::Before => at,
            // Where the call has come back.
            When::After if block.end == BlockEnd::Call && at == block.last() => {
                return self.arrivals.get(&block.successors.first()?.to).cloned();
            }
            When::After | When::Instead => at.next(),
        };
        let mut places = self.arrivals.get(&index)?.clone();
        let passed = self.moves.range(block.instructions.start..end);
        for step in passed.flat_map(|(_, moves)| &moves.moves) {
            places.iter_mut().filter(|own| **own == step.from).for_each(|own| *own = step.to);
        }
        Some(places)
    }
}
