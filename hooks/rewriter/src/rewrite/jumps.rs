//! Registers for jumps to trampolines that branches do not reach.

use super::homes;
use crate::dataflow::{Liveness, OutstandingLoads};
use crate::flow::{Disassembly, FunctionIndex, IndexVec, InstIndex};
use crate::layout::{self, Placement};
use crate::registers::Component;
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Pc, Register, RegisterRange, RegisterSet, Sgpr};
use std::collections::BTreeMap;

/// The functions that stay and are out of a branch's reach of new code at `address`.
pub fn far(
    object: &CodeObject,
    program: &Disassembly,
    placements: &IndexVec<FunctionIndex, Placement>,
    address: Pc,
) -> Vec<FunctionIndex> {
    let stay = placements.enumerated().filter(|(_, own)| **own == Placement::Trampoline);
    let is_far = |index: &FunctionIndex| {
        layout::is_far(object, program, &program.functions[*index], address)
    };
    stay.map(|(index, _)| index).filter(is_far).collect()
}

/// Where jumps find a pair.
pub struct PairSearch<'a> {
    program: &'a Disassembly,
    liveness: &'a Liveness<'a>,
    loads: &'a OutstandingLoads,
    component: &'a Component,
    /// Registers of the hooks that keep what is in them.
    kept: RegisterSet,
    /// A pair that the component's code does not use at all.
    pair: Option<RegisterRange>,
}

impl<'a> PairSearch<'a> {
    /// A search in a component, whose hooks keep what is in `kept`.
    pub fn new(
        program: &'a Disassembly,
        liveness: &'a Liveness<'a>,
        loads: &'a OutstandingLoads,
        component: &'a Component,
        kept: RegisterSet,
    ) -> PairSearch<'a> {
        let pair = homes::pair(component.free().difference(kept), component);
        PairSearch { program, liveness, loads, component, kept, pair }
    }

    /// For each instruction of a function before which SCC is not live, the first register of a
    /// pair that is not live either.
    pub fn pairs(&self, function: FunctionIndex) -> BTreeMap<InstIndex, Sgpr> {
        let mut pairs = BTreeMap::new();
        for block in self.program.functions[function].blocks.iter() {
            self.loads.walk(self.program, block, |at, outstanding| {
                let live = self.liveness.before(at).active;
                if live.contains(Register::Scc) {
                    return;
                }
                let first = match self.pair.map(|pair| pair.first) {
                    Some(Register::Sgpr(first)) => Some(first),
                    // What a caller or callee loads may be on its way to any register.
                    _ if outstanding.is_unknown() => None,
                    _ => self.dead(live.union(outstanding.registers())),
                };
                pairs.extend(first.map(|first| (at, first)));
            });
        }
        pairs
    }

    /// A pair that every kernel of the component has, and that is not among those in use.
    fn dead(&self, used: RegisterSet) -> Option<Sgpr> {
        let free = self.component.allocatable.difference(used).difference(self.kept);
        match homes::pair(free, self.component)?.first {
            Register::Sgpr(first) => Some(first),
            _ => None,
        }
    }
}
