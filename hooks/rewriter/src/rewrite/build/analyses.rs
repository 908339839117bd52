//! Results of analyses at program points.

use crate::dataflow::{IndexMode, Live, Liveness, OutstandingLoads};
use crate::flow::{IndexVec, InstIndex};
use crate::point::{ProgramPoint, When};
use flipwave_isa::RegisterSet;

/// Results of analyses for all points of a program.
pub(super) struct Analyses<'a> {
    pub liveness: &'a Liveness<'a>,
    pub loads: OutstandingLoads,
    /// GPR-index mode before each instruction.
    pub index_mode: IndexVec<InstIndex, IndexMode>,
    /// `true` if a hook changes EXEC permanently.
    pub changes_exec: bool,
}

impl Analyses<'_> {
    /// GPR-index mode at a point. After an instruction, it is that of the next one: the instruction that
    /// switches the mode is never the last of a block.
    pub fn index_mode(&self, point: ProgramPoint) -> IndexMode {
        let next = if point.when == When::After { point.at.next() } else { point.at };
        self.index_mode.get(next).copied().unwrap_or_default()
    }

    /// Live registers at a point.
    pub fn live(&self, point: ProgramPoint) -> Live {
        let at = point.at;
        let live = match point.when {
            When::Before => self.liveness.before(at),
            When::After => self.liveness.after(at),
            When::Instead => self.liveness.before(at).union(self.liveness.after(at)),
        };
        if !self.changes_exec {
            return live;
        }
        // Another hook at this point may change EXEC, so that lanes that are active here are masked there.
        let vectors = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS);
        Live { active: live.any(), masked: live.any().intersection(vectors) }
    }
}
