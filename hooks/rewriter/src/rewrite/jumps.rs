//! Free SGPR pairs for jumps to trampolines out of branch range.

use super::reserve;
use crate::dataflow::{Liveness, OutstandingLoads};
use crate::flow::{Disassembly, FunctionIndex, IndexVec, InstIndex};
use crate::layout::{self, Placement};
use crate::registers::Component;
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Pc, Register, RegisterRange, RegisterSet, Sgpr};
use std::collections::BTreeMap;

/// The functions that stay and are out of branch range of new code at `address`.
pub fn far(
    object: &CodeObject,
    program: &Disassembly,
    placements: &IndexVec<FunctionIndex, Placement>,
    address: Pc,
) -> Vec<FunctionIndex> {
    let stay =
        placements.enumerated().filter(|(_, placement)| **placement == Placement::Trampoline);
    let is_far = |index: &FunctionIndex| {
        layout::is_far(object, program, &program.functions[*index], address)
    };
    stay.map(|(index, _)| index).filter(is_far).collect()
}

/// Finds free SGPR pairs.
pub struct PairSearch<'a> {
    program: &'a Disassembly,
    liveness: &'a Liveness<'a>,
    loads: &'a OutstandingLoads,
    component: &'a Component,
    /// Registers reserved for hooks.
    reserved: RegisterSet,
    /// A pair that the code of the component does not use.
    pair: Option<RegisterRange>,
}

impl<'a> PairSearch<'a> {
    /// Creates a search in a component in which the registers `reserved` are reserved for hooks.
    pub fn new(
        program: &'a Disassembly,
        liveness: &'a Liveness<'a>,
        loads: &'a OutstandingLoads,
        component: &'a Component,
        reserved: RegisterSet,
    ) -> PairSearch<'a> {
        let pair = reserve::pair(component.free().difference(reserved), component);
        PairSearch { program, liveness, loads, component, reserved, pair }
    }

    /// For each instruction of a function before which SCC and a pair are dead, the first register of the
    /// pair.
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
                    // A caller or callee may have outstanding loads to any register.
                    _ if outstanding.is_unknown() => None,
                    _ => self.dead(live.union(outstanding.registers())),
                };
                pairs.extend(first.map(|first| (at, first)));
            });
        }
        pairs
    }

    /// A pair outside `used` that all kernels of the component have.
    fn dead(&self, used: RegisterSet) -> Option<Sgpr> {
        let free = self.component.allocatable.difference(used).difference(self.reserved);
        match reserve::pair(free, self.component)?.first {
            Register::Sgpr(first) => Some(first),
            _ => None,
        }
    }
}
