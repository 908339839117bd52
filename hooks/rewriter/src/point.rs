//! Program points: positions of inserted code relative to instructions.

use crate::flow::InstIndex;
use std::ops::{Range, RangeInclusive};

/// Position relative to an instruction, in order of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum When {
    /// Before the instruction, on every path to it.
    Before,
    /// In place of the instruction.
    Instead,
    /// After the instruction, on every path from it: on both paths of a conditional branch, and after
    /// the return of a call.
    After,
}

/// A position relative to an instruction of a program. Points are ordered by instruction, then by
/// execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramPoint {
    /// The instruction.
    pub at: InstIndex,
    /// Position relative to the instruction.
    pub when: When,
}

impl ProgramPoint {
    /// The point at a position relative to an instruction.
    pub fn new(at: InstIndex, when: When) -> ProgramPoint {
        ProgramPoint { at, when }
    }

    /// The point before an instruction.
    pub fn before(at: InstIndex) -> ProgramPoint {
        ProgramPoint::new(at, When::Before)
    }

    /// The point in place of an instruction.
    pub fn instead(at: InstIndex) -> ProgramPoint {
        ProgramPoint::new(at, When::Instead)
    }

    /// The point after an instruction.
    pub fn after(at: InstIndex) -> ProgramPoint {
        ProgramPoint::new(at, When::After)
    }

    /// All points of an instruction, as a range of keys.
    pub fn all(at: InstIndex) -> RangeInclusive<ProgramPoint> {
        ProgramPoint::before(at)..=ProgramPoint::after(at)
    }

    /// All points of the instructions from `start` to before `end`, as a range of keys; empty if `end`
    /// does not follow `start`.
    pub fn within(start: InstIndex, end: InstIndex) -> Range<ProgramPoint> {
        ProgramPoint::before(start)..ProgramPoint::before(end.max(start))
    }
}
