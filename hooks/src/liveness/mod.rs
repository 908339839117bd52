//! Which registers hold values that are still wanted.
//!
//! The analysis goes backwards over all functions at once: what is wanted where a call comes back
//! is wanted at the callee's returns, what is wanted at a callee's entry is wanted at its calls.
//! Where control goes to a place that is not known, everything is wanted; so it is where a
//! function returns whose address is taken.

mod entry;
mod index_mode;
mod solve;
mod transfer;
mod usage;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use index_mode::{IndexMode, index_mode};

pub use entry::initialised;
pub use usage::RegisterUse;

use crate::flow::{BlockEnd, BlockIndex, InstIndex, Program};
use flipwave_isa::{Register, RegisterSet};
use transfer::Transfers;

/// Registers whose values are wanted at a point between two instructions.
///
/// A register of lanes has two parts: the lanes that EXEC selects at the point, and the others. A
/// vector write under EXEC ends the wish for the first part alone. Registers that are not per lane
/// stand in `active`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Wanted, in lanes that EXEC selects.
    pub active: RegisterSet,
    /// VGPRs and AccVGPRs wanted in lanes that EXEC masks.
    pub masked: RegisterSet,
}

impl Live {
    /// Wanted in any lane.
    pub fn any(&self) -> RegisterSet {
        self.active.union(self.masked)
    }

    /// What is wanted here or there.
    #[must_use]
    pub fn union(self, other: Live) -> Live {
        Live { active: self.active.union(other.active), masked: self.masked.union(other.masked) }
    }
}

/// What is wanted at every point of a program.
///
/// Some registers are wanted everywhere, since the hardware or its trap handler reads them at any
/// time: MODE, which besides rounding has what traps and how registers are indexed; XNACK_MASK;
/// the trap handler's own.
#[derive(Clone, Debug)]
pub struct Liveness<'a> {
    program: &'a Program,
    transfers: Transfers,
    /// By block: before its first instruction.
    entries: Vec<Live>,
    /// By function: behind its returns.
    exits: Vec<Live>,
    /// Before every [`STRIDE`]th instruction.
    kept: Vec<Live>,
}

/// Between two kept points so many instructions are gone through again.
const STRIDE: u32 = 4;

impl<'a> Liveness<'a> {
    /// Analyses a program.
    pub fn new(program: &'a Program) -> Liveness<'a> {
        let transfers = Transfers::of(program);
        let (entries, exits) = solve::solve(program, &transfers);
        let mut liveness = Liveness { program, transfers, entries, exits, kept: Vec::new() };
        liveness.keep();
        liveness
    }

    /// What is wanted before an instruction, from wherever control comes.
    pub fn before(&self, inst: InstIndex) -> Live {
        let Some(block) = self.program.block_of(inst).and_then(|own| self.program.block(own))
        else {
            return self.transfers.everything();
        };
        let next = inst.0.next_multiple_of(STRIDE);
        let (end, mut live) = if next < block.instructions.end {
            (next, self.kept(next))
        } else {
            (block.instructions.end, self.leaving(inst))
        };
        for index in (inst.0..end).rev() {
            self.transfers.step(self.program, InstIndex(index), &mut live);
        }
        live
    }

    /// What is wanted after an instruction, on any way from there: for a call, where it has come
    /// back.
    pub fn after(&self, inst: InstIndex) -> Live {
        let at = self.program.block_of(inst);
        let Some(block) = at.and_then(|own| self.program.block(own)) else {
            return self.transfers.everything();
        };
        if inst.0 + 1 < block.instructions.end {
            return self.before(InstIndex(inst.0 + 1));
        }
        match block.end {
            BlockEnd::Call => block
                .successors
                .iter()
                .map(|edge| self.entry(edge.to))
                .fold(self.transfers.nothing(), Live::union),
            _ => self.leaving(inst),
        }
    }

    /// The program.
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// What is wanted where control enters a block.
    pub fn entry(&self, block: BlockIndex) -> Live {
        self.entries.get(block.0 as usize).copied().unwrap_or_else(|| self.transfers.everything())
    }

    fn kept(&self, inst: u32) -> Live {
        let kept = self.kept.get((inst / STRIDE) as usize).copied();
        kept.unwrap_or_else(|| self.transfers.everything())
    }

    /// What is wanted behind the last instruction of the block of `inst`.
    fn leaving(&self, inst: InstIndex) -> Live {
        match self.program.block_of(inst) {
            Some(block) => {
                solve::leaving(self.program, &self.transfers, &self.entries, &self.exits, block)
            }
            None => self.transfers.everything(),
        }
    }

    fn keep(&mut self) {
        let count = self.program.instructions.len().div_ceil(STRIDE as usize);
        let mut kept = vec![Live::default(); count];
        for (at, block) in (0..).map(BlockIndex).zip(&self.program.blocks) {
            let mut live =
                solve::leaving(self.program, &self.transfers, &self.entries, &self.exits, at);
            for index in block.instructions.clone().rev() {
                self.transfers.step(self.program, InstIndex(index), &mut live);
                if index % STRIDE == 0
                    && let Some(own) = kept.get_mut((index / STRIDE) as usize)
                {
                    *own = live;
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
