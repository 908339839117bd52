//! Which registers are live.
//!
//! The analysis goes backwards over all functions at once: what is live where a call comes back
//! is live at the callee's returns, what is live at a callee's entry is live at its calls.
//! Where control goes to a place that is not known, everything is live; so it is where a
//! function returns whose address is taken.

mod entry;
mod solve;
mod transfer;
mod usage;

#[cfg(test)]
pub(crate) mod tests;

pub use entry::initialised;
pub use usage::RegisterUse;

use crate::flow::{
    BlockEnd, BlockIndex, Disassembly, FunctionIndex, IndexRange, IndexVec, InstIndex,
};
use flipwave_isa::{Register, RegisterSet};
use transfer::Transfers;

/// Registers that are live at a point between two instructions.
///
/// A register of lanes has two parts: the lanes that EXEC selects at the point, and the others. A
/// vector write under EXEC kills the first part alone. Registers that are not per lane
/// stand in `active`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Wanted, in lanes that EXEC selects.
    pub active: RegisterSet,
    /// VGPRs and AccVGPRs live in lanes that EXEC masks.
    pub masked: RegisterSet,
}

impl Live {
    /// Wanted in any lane.
    pub fn any(&self) -> RegisterSet {
        self.active.union(self.masked)
    }

    /// What is live here or there.
    #[must_use]
    pub fn union(self, other: Live) -> Live {
        Live { active: self.active.union(other.active), masked: self.masked.union(other.masked) }
    }
}

/// What is live at every point of a program.
///
/// Some registers are live everywhere, since the hardware or its trap handler reads them at any
/// time: MODE, which besides rounding has what traps and how registers are indexed; XNACK_MASK;
/// the trap handler's own.
#[derive(Clone, Debug)]
pub struct Liveness<'a> {
    program: &'a Disassembly,
    transfers: Transfers,
    /// By block: before its first instruction.
    entries: IndexVec<BlockIndex, Live>,
    /// By function: after its returns.
    exits: IndexVec<FunctionIndex, Live>,
    /// Before every [`STRIDE`]th instruction.
    kept: Vec<Live>,
}

/// Instructions from one kept point to the next, those between being computed again when asked for.
const STRIDE: u32 = 4;

impl<'a> Liveness<'a> {
    /// Analyses a program.
    pub fn new(program: &'a Disassembly) -> Liveness<'a> {
        let transfers = Transfers::of(program);
        let (entries, exits) = solve::solve(program, &transfers);
        let mut liveness = Liveness { program, transfers, entries, exits, kept: Vec::new() };
        liveness.keep();
        liveness
    }

    /// What is live before an instruction, from wherever control comes.
    pub fn before(&self, inst: InstIndex) -> Live {
        let at = self.program.block_of(inst);
        let next = InstIndex(inst.0.next_multiple_of(STRIDE));
        let end = self.program.blocks[at].instructions.end;
        let (end, mut live) = match next < end {
            true => (next, self.kept[(next.0 / STRIDE) as usize]),
            false => (end, self.leaving(at)),
        };
        for index in IndexRange::new(inst, end).iter().rev() {
            self.transfers.step(self.program, index, &mut live);
        }
        live
    }

    /// What is live after an instruction, on any way from there: for a call, where it has come
    /// back.
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
                .fold(self.transfers.nothing(), Live::union),
            _ => self.leaving(at),
        }
    }

    /// Registers that the instructions of some functions reach by an index.
    pub fn indexed(&self, functions: &[FunctionIndex]) -> RegisterSet {
        self.transfers.indexed().of_functions(self.program, functions)
    }

    /// The program.
    pub fn program(&self) -> &'a Disassembly {
        self.program
    }

    /// What is live where control enters a block.
    pub fn entry(&self, block: BlockIndex) -> Live {
        self.entries[block]
    }

    /// What is live after the last instruction of a block.
    fn leaving(&self, block: BlockIndex) -> Live {
        solve::leaving(self.program, &self.transfers, &self.entries, &self.exits, block)
    }

    fn keep(&mut self) {
        let count = self.program.instructions.len().div_ceil(STRIDE as usize);
        let mut kept = vec![Live::default(); count];
        for (at, block) in self.program.blocks.enumerated() {
            let mut live = self.leaving(at);
            for index in block.instructions.iter().rev() {
                self.transfers.step(self.program, index, &mut live);
                if index.0.is_multiple_of(STRIDE) {
                    kept[(index.0 / STRIDE) as usize] = live;
                }
            }
        }
        self.kept = kept;
    }
}

/// The registers that the hardware or its trap handler may read at any time.
pub(crate) fn always(registers: &mut RegisterSet) {
    registers.insert(Register::Mode);
    registers.insert(Register::XnackMaskLo);
    registers.insert(Register::XnackMaskHi);
    (0..16).for_each(|n| registers.insert(Register::Ttmp(flipwave_isa::Ttmp(n))));
}
