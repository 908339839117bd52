//! Which registers a word of state can lie in, around each instruction.

use super::Ground;
use crate::flow::BlockIndex;
use flipwave_isa::RegisterSet;
use flipwave_isa::counter::Counter;

/// What is open along a block.
pub struct Openings {
    /// Before each instruction: nobody wants what they hold, and no load that is known is going to
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
        ground.loads.walk(ground.program, block, |at, under_way| {
            let closed = ground.liveness.before(at).active.union(under_way.registers());
            let open = ground.registers.difference(closed);
            let inst = &ground.program.instructions[at];
            let named = inst.reads.iter().chain(&inst.writes);
            openings.before.push(open);
            openings.across.push(open.difference(named.copied().collect()));
            openings.waits.push(under_way.needed(open));
        });
        openings
    }

    /// What is open when control comes to the block.
    pub fn arrival(&self) -> RegisterSet {
        self.before.first().copied().unwrap_or_default()
    }

    /// What is open when control leaves the block.
    pub fn departure(&self) -> RegisterSet {
        self.across.last().copied().unwrap_or_default()
    }
}
