//! Interprocedural liveness of registers.
//!
//! Registers that are live after a call are live at the callee's returns, and registers that are live at a
//! callee's entry are live at its calls. All registers are live at jumps to unknown addresses, and at the
//! returns of functions whose address is taken.

mod entry;
mod live;
mod solve;
mod transfer;
mod usage;

#[cfg(test)]
pub(crate) mod tests;

pub use entry::initialised;
pub use live::Live;
pub use usage::RegisterUse;

use crate::flow::{BlockEnd, BlockIndex, Disassembly, FunctionIndex, IndexRange, InstIndex};
use flipwave_isa::RegisterSet;
use solve::Solution;
use transfer::Transfers;

/// Live registers at every point of a program.
///
/// MODE, XNACK_MASK and the registers of the trap handler are live everywhere, because the hardware or the
/// trap handler may read them at any time.
#[derive(Clone, Debug)]
pub struct Liveness<'a> {
    program: &'a Disassembly,
    transfers: Transfers,
    solution: Solution,
    /// Live registers before every [`STRIDE`]th instruction.
    samples: Vec<Live>,
}

/// Distance between stored samples in instructions. Points in between are computed on request.
const STRIDE: u32 = 4;

impl<'a> Liveness<'a> {
    /// Analyzes a program.
    pub fn new(program: &'a Disassembly) -> Liveness<'a> {
        let transfers = Transfers::new(program);
        let solution = Solution::new(program, &transfers);
        let samples = samples(program, &transfers, &solution);
        Liveness { program, transfers, solution, samples }
    }

    /// Registers that are live before an instruction.
    pub fn before(&self, inst: InstIndex) -> Live {
        let at = self.program.block_of(inst);
        let next = InstIndex(inst.0.next_multiple_of(STRIDE));
        let end = self.program.blocks[at].instructions.end;
        let (end, mut live) = if next < end {
            (next, self.samples[(next.0 / STRIDE) as usize])
        } else {
            (end, self.at_end(at))
        };
        for index in IndexRange::new(inst, end).iter().rev() {
            self.transfers.apply(self.program, index, &mut live);
        }
        live
    }

    /// Registers that are live after an instruction, on any path. For a call, this is the point after its
    /// return.
    pub fn after(&self, inst: InstIndex) -> Live {
        let at = self.program.block_of(inst);
        let block = &self.program.blocks[at];
        if inst.next() < block.instructions.end {
            return self.before(inst.next());
        }
        match block.end {
            BlockEnd::Call => block
                .successors
                .iter()
                .map(|edge| self.entry(edge.to))
                .fold(self.transfers.always_live(), Live::union),
            _ => self.at_end(at),
        }
    }

    /// Registers that the instructions of the functions may access through an index.
    pub fn indexed(&self, functions: &[FunctionIndex]) -> RegisterSet {
        self.transfers.indexed().of_functions(self.program, functions)
    }

    /// The program.
    pub fn program(&self) -> &'a Disassembly {
        self.program
    }

    /// Registers that are live at the beginning of a block.
    pub fn entry(&self, block: BlockIndex) -> Live {
        self.solution.entries[block]
    }

    /// Registers that are live after the last instruction of a block.
    fn at_end(&self, block: BlockIndex) -> Live {
        self.solution.at_end(self.program, &self.transfers, block)
    }
}

/// Live registers before every [`STRIDE`]th instruction.
fn samples(program: &Disassembly, transfers: &Transfers, solution: &Solution) -> Vec<Live> {
    let count = program.instructions.len().div_ceil(STRIDE as usize);
    let mut samples = vec![Live::default(); count];
    for (at, block) in program.blocks.enumerated() {
        let mut live = solution.at_end(program, transfers, at);
        for index in block.instructions.iter().rev() {
            transfers.apply(program, index, &mut live);
            if index.0.is_multiple_of(STRIDE) {
                samples[(index.0 / STRIDE) as usize] = live;
            }
        }
    }
    samples
}
