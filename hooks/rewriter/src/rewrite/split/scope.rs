//! Scope and moves of split live ranges.

use crate::dataflow::{Liveness, OutstandingLoads};
use crate::flow::{BlockIndex, Disassembly, FunctionIndex};
use crate::registers::Move;
use flipwave_isa::RegisterSet;
use flipwave_isa::counter::Counter;

/// The code and the registers of a split live range.
#[derive(Clone, Copy)]
pub struct SplitScope<'a> {
    /// The code.
    pub program: &'a Disassembly,
    /// The functions in which the range is live, including their callees.
    pub functions: &'a [FunctionIndex],
    /// Liveness of the code.
    pub liveness: &'a Liveness<'a>,
    /// Outstanding loads of the code.
    pub loads: &'a OutstandingLoads,
    /// The SGPRs that may be used where they are dead.
    pub registers: RegisterSet,
}

impl SplitScope<'_> {
    /// The blocks of all functions.
    pub fn blocks(&self) -> impl Iterator<Item = BlockIndex> {
        let functions = self.functions.iter().map(|index| &self.program.functions[*index]);
        functions.flat_map(|function| function.blocks.iter())
    }
}

/// Moves before an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveGroup {
    /// Required waits: counters with their maximum values.
    pub waits: Vec<(Counter, u8)>,
    /// The moves in order.
    pub moves: Vec<Move>,
}
