//! Free registers around each instruction of a block.

use super::scope::SplitScope;
use crate::flow::BlockIndex;
use flipwave_isa::RegisterSet;
use flipwave_isa::counter::Counter;

/// Registers of a scope that are free in a block.
pub struct FreeRegisters {
    /// Free registers before each instruction: they are dead, and no known outstanding load writes them.
    pub before: Vec<RegisterSet>,
    /// Free registers before each instruction that the instruction does not name.
    pub across: Vec<RegisterSet>,
    /// Waits required before each instruction before a free register may be written, because of unknown
    /// loads.
    pub waits: Vec<Vec<(Counter, u8)>>,
}

impl FreeRegisters {
    /// Computes the free registers in a block.
    pub fn of(scope: &SplitScope<'_>, block: BlockIndex) -> FreeRegisters {
        let mut all = FreeRegisters { before: Vec::new(), across: Vec::new(), waits: Vec::new() };
        scope.loads.walk(scope.program, block, |at, outstanding| {
            let used = scope.liveness.before(at).active.union(outstanding.registers());
            let free = scope.registers.difference(used);
            let inst = &scope.program.instructions[at];
            let named = inst.reads.iter().chain(&inst.writes);
            all.before.push(free);
            all.across.push(free.difference(named.copied().collect()));
            all.waits.push(outstanding.needed(free));
        });
        all
    }

    /// Free registers at the start of the block.
    pub fn at_start(&self) -> RegisterSet {
        self.before[0]
    }

    /// Free registers at the end of the block.
    pub fn at_end(&self) -> RegisterSet {
        self.across[self.across.len() - 1]
    }
}
