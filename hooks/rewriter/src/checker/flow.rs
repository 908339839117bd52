//! Control flow of the new code, by instruction.

use super::code::{ClaimedCode, ClaimedInstIndex};
use super::context::CheckContext;
use super::splice::{ComputedJump, Splice, SpliceOrigin};
use crate::flow::{IndexVec, InstIndex};
use flipwave_isa::Opcode;
use std::collections::{BTreeSet, HashSet};

/// Successors and predecessors of each instruction of the new code.
pub struct Flow {
    successors: IndexVec<ClaimedInstIndex, Vec<ClaimedInstIndex>>,
    predecessors: IndexVec<ClaimedInstIndex, Vec<ClaimedInstIndex>>,
    /// Instructions entered from unknown code: the first of each device function, and those after calls.
    entered_from_unknown: HashSet<ClaimedInstIndex>,
    /// Entries of kernels.
    pub kernels: Vec<KernelEntry>,
}

/// The entry of a kernel in the new code.
#[derive(Clone, Copy, Debug)]
pub struct KernelEntry {
    /// Index of the kernel in the original code object.
    pub kernel: usize,
    /// The first instruction.
    pub first: ClaimedInstIndex,
}

impl Flow {
    /// Collects direct branches, resolved jumps of inserted code and resolved jumps of original code.
    pub fn new(
        context: &CheckContext<'_>,
        code: &ClaimedCode,
        splices: &BTreeSet<Splice>,
        jumps: &[ComputedJump],
    ) -> Flow {
        let mut flow = Flow {
            successors: IndexVec::filled(Vec::new(), code.items().len()),
            predecessors: IndexVec::filled(Vec::new(), code.items().len()),
            entered_from_unknown: HashSet::new(),
            kernels: Vec::new(),
        };
        let index = |pc: u64| code.index_at(pc);
        for (at, item) in code.items().enumerated() {
            let is_call = item.facts.inst.flags.call;
            let target = item.facts.target(item.pc).and_then(index);
            if let (Some(to), false) = (target, is_call) {
                flow.add(at, to);
            }
            if is_call && !item.is_inserted() {
                flow.entered_from_unknown.extend(index(item.end()));
            } else if let Some(to) =
                index(item.end()).filter(|_| item.facts.falls_through && !is_call)
            {
                flow.add(at, to);
            }
        }
        for jump in jumps {
            if let (Some(from), Some(to)) = (index(jump.from), index(jump.to)) {
                flow.add(from, to);
            }
        }
        let jump_targets = flow.add_indirect(context, code, splices);
        for splice in splices {
            let Some(start) = index(splice.start) else { continue };
            let is_function = is_device_function(context, splice.to);
            match splice.from {
                SpliceOrigin::Kernel(kernel) => {
                    flow.kernels.push(KernelEntry { kernel, first: start })
                }
                SpliceOrigin::Address if !is_function && jump_targets.contains(&splice.to) => {}
                SpliceOrigin::Flow if !is_function => {}
                SpliceOrigin::Address | SpliceOrigin::Flow | SpliceOrigin::Old => {
                    flow.entered_from_unknown.insert(start);
                }
            }
        }
        flow
    }

    fn add(&mut self, from: ClaimedInstIndex, to: ClaimedInstIndex) {
        if !self.successors[from].contains(&to) {
            self.successors[from].push(to);
            self.predecessors[to].push(from);
        }
    }

    /// Adds the indirect jumps of the original program. Returns their targets.
    fn add_indirect(
        &mut self,
        context: &CheckContext<'_>,
        code: &ClaimedCode,
        splices: &BTreeSet<Splice>,
    ) -> HashSet<InstIndex> {
        let mut targets = HashSet::new();
        for block in &context.program.blocks {
            let new_pc = context.new_pc(block.last());
            let Some(from) = new_pc.and_then(|pc| code.index_at(pc.0)) else { continue };
            if code.items()[from].facts.opcode() != Opcode::SSetpc {
                continue;
            }
            for edge in &block.successors {
                let to = context.program.blocks[edge.to].instructions.start;
                targets.insert(to);
                for splice in splices.iter().filter(|splice| splice.to == to) {
                    if let Some(start) = code.index_at(splice.start) {
                        self.add(from, start);
                    }
                }
            }
        }
        targets
    }

    /// Instructions that may execute after an instruction, except for called functions.
    pub fn successors(&self, at: ClaimedInstIndex) -> &[ClaimedInstIndex] {
        &self.successors[at]
    }

    /// Instructions that may execute before an instruction.
    pub fn predecessors(&self, at: ClaimedInstIndex) -> &[ClaimedInstIndex] {
        &self.predecessors[at]
    }

    /// Instructions entered from unknown code: the first of each device function, and those after calls.
    pub fn entered_from_unknown(&self) -> impl Iterator<Item = ClaimedInstIndex> {
        self.entered_from_unknown.iter().copied()
    }
}

/// Returns `true` for the first instruction of a function that is not a kernel.
fn is_device_function(context: &CheckContext<'_>, index: InstIndex) -> bool {
    let function = &context.program.functions[context.program.function_of(index)];
    function.instructions.start == index && function.kernel.is_none()
}
