//! Which registers a word of state can lie in, around each instruction.

use super::Ground;
use crate::flow::BlockIndex;
use flipwave_isa::RegisterSet;
use flipwave_isa::counter::Counter;

/// What is open along a block.
pub struct Openings {
    /// Before each instruction: they are not live, and no load that is known is going to
    /// deliver to them.
    pub before: Vec<RegisterSet>,
    /// Of those, the ones that the instruction leaves alone.
    pub across: Vec<RegisterSet>,
    /// What must be waited for before each instruction, before a register may be written: loads
    /// that are not known.
    pub waits: Vec<Vec<(Counter, u8)>>,
}

impl Openings {
    /// The openings of a block.
    pub fn of(ground: &Ground<'_>, block: BlockIndex) -> Openings {
        let mut openings = Openings { before: Vec::new(), across: Vec::new(), waits: Vec::new() };
        ground.loads.walk(ground.program, block, |at, outstanding| {
            let closed = ground.liveness.before(at).active.union(outstanding.registers());
            let open = ground.registers.difference(closed);
            let inst = &ground.program.instructions[at];
            let named = inst.reads.iter().chain(&inst.writes);
            openings.before.push(open);
            openings.across.push(open.difference(named.copied().collect()));
            openings.waits.push(outstanding.needed(open));
        });
        openings
    }

    /// What is open when control comes to the block.
    pub fn arrival(&self) -> RegisterSet {
        self.before[0]
    }

    /// What is open when control leaves the block.
    pub fn departure(&self) -> RegisterSet {
        self.across[self.across.len() - 1]
    }
}
