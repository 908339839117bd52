//! Registers for jumps to trampolines that branches do not reach.

use super::homes;
use crate::component::Component;
use crate::flow::{BlockIndex, FunctionIndex, InstIndex, Program};
use crate::layout::{self, Placement};
use crate::liveness::Liveness;
use crate::site::Homes;
use crate::under_way::LoadsUnderWay;
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Pc, Register, RegisterRange, RegisterSet, Sgpr};
use std::collections::BTreeMap;

/// The functions that stay and are out of a branch's reach of new code at `address`.
pub fn far(
    object: &CodeObject,
    program: &Program,
    placements: &BTreeMap<FunctionIndex, Placement>,
    address: Pc,
) -> Vec<FunctionIndex> {
    let stay = placements.iter().filter(|(_, placement)| **placement == Placement::Trampoline);
    let is_far = |index: &FunctionIndex| {
        program
            .function(*index)
            .is_some_and(|function| layout::is_far(object, program, function, address))
    };
    stay.map(|(index, _)| *index).filter(is_far).collect()
}

/// A pair that neither a component nor its homes use.
pub fn pair(component: &Component, homes: &Homes) -> Option<RegisterRange> {
    let mut free = component.free().difference(homes.registers);
    homes::sgprs(&mut free, component, 2)
}

/// Where jumps find a pair.
pub struct Search<'a> {
    pub program: &'a Program,
    pub liveness: &'a Liveness<'a>,
    pub loads: &'a LoadsUnderWay,
    pub component: &'a Component,
    /// What hooks keep all through a kernel.
    pub homes: &'a Homes,
    /// Of those, the pair that is for jumps alone.
    pub pair: Option<RegisterRange>,
}

impl Search<'_> {
    /// For each instruction of a function before which SCC is not wanted, the first register of a
    /// pair that is not wanted either.
    pub fn pairs(&self, function: FunctionIndex) -> BTreeMap<InstIndex, Sgpr> {
        let mut pairs = BTreeMap::new();
        let Some(function) = self.program.function(function) else { return pairs };
        for block in function.blocks.clone() {
            self.loads.walk(self.program, BlockIndex(block), |at, under_way| {
                let wanted = self.liveness.before(at).active;
                if wanted.contains(Register::Scc) {
                    return;
                }
                let first = match self.pair.map(|pair| pair.first) {
                    Some(Register::Sgpr(first)) => Some(first),
                    // What a caller or callee loads may be on its way to any register.
                    _ if under_way.is_unknown() => None,
                    _ => self.dead(wanted.union(under_way.registers())),
                };
                pairs.extend(first.map(|first| (at, first)));
            });
        }
        pairs
    }

    /// A pair that every kernel of the component has, and that is not among those in use.
    fn dead(&self, used: RegisterSet) -> Option<Sgpr> {
        let Component { allocatable, .. } = self.component;
        let mut free = allocatable.difference(used).difference(self.homes.registers);
        match homes::sgprs(&mut free, self.component, 2)?.first {
            Register::Sgpr(first) => Some(first),
            _ => None,
        }
    }
}
