//! Input of the checker: both code objects, and the rewriter's claims about them.

use crate::dataflow::Live;
use crate::flow::{Disassembly, Function, IndexVec, InstIndex};
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Pc, RegisterSet, Rules};
use std::ops::Range;

/// The rewriter's description of its result, which the checker verifies.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// New address of each original instruction; `None` if the instruction was removed or replaced on
    /// request, or is a hint that was dropped.
    pub instructions: IndexVec<InstIndex, Option<Pc>>,
    /// Inserted code, by ascending address.
    pub inserted: Vec<Inserted>,
}

impl Claims {
    /// The original instruction that the inserted code at `pc` belongs to.
    pub fn inserted_for(&self, pc: Pc) -> Option<InstIndex> {
        let above = self.inserted.partition_point(|inserted| inserted.range.start <= pc.0);
        let inserted = self.inserted.get(above.checked_sub(1)?)?;
        inserted.at.filter(|_| inserted.range.contains(&pc.0))
    }
}

/// A contiguous range of inserted code.
#[derive(Clone, Debug)]
pub struct Inserted {
    /// Addresses in the new code object.
    pub range: Range<u64>,
    /// The original instruction that the code belongs to; `None` for islands and routines.
    pub at: Option<InstIndex>,
    /// Registers that the code was requested to change permanently.
    pub changes: RegisterSet,
}

/// Input of all rules.
pub(super) struct CheckContext<'a> {
    pub rules: Rules,
    pub original: &'a CodeObject,
    /// The disassembly of `original`.
    pub program: &'a Disassembly,
    /// Registers that are live before an original instruction.
    pub live: &'a dyn Fn(InstIndex) -> Live,
    pub new: &'a CodeObject,
    pub claims: &'a Claims,
}

impl CheckContext<'_> {
    /// The claimed new address of an original instruction.
    pub fn new_pc(&self, index: InstIndex) -> Option<Pc> {
        self.claims.instructions[index]
    }

    /// The address of an original instruction in the original code object.
    pub fn old_pc(&self, index: InstIndex) -> Pc {
        self.program.instructions[index].pc
    }

    /// The original instruction at an address of the original code object.
    pub fn original_at(&self, pc: u64) -> Option<InstIndex> {
        self.program.at(Pc(pc))
    }

    /// Returns `true` if at least a part of the function remains at its original address.
    pub fn remains_in_place(&self, function: &Function) -> bool {
        let insts = &self.program.instructions[function.instructions];
        let extent = insts[0].pc.0..=insts[insts.len() - 1].pc.0;
        let keeps_address = |index| self.new_pc(index) == Some(self.old_pc(index));
        let mut inserted = self.claims.inserted.iter();
        function.instructions.iter().any(keeps_address)
            || inserted.any(|inserted| extent.contains(&inserted.range.start))
    }
}
