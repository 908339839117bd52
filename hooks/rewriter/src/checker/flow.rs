//! Where control goes in the new code, instruction by instruction.

use super::Question;
use super::code::{ClaimedCode, ClaimedInstIndex};
use super::originals::{Seam, SeamOrigin};
use super::seam::ComputedJump;
use crate::flow::{IndexVec, InstIndex};
use flipwave_isa::Opcode;
use std::collections::{BTreeSet, HashSet};

/// Successors and predecessors of the instructions of the new code, by their indices.
pub struct Flow {
    successors: IndexVec<ClaimedInstIndex, Vec<ClaimedInstIndex>>,
    predecessors: IndexVec<ClaimedInstIndex, Vec<ClaimedInstIndex>>,
    /// Instructions to which control comes from somewhere that is not followed: device functions
    /// and what is after calls.
    entered_from_elsewhere: HashSet<ClaimedInstIndex>,
    /// First instruction of each kernel, by the kernel's index in the original code object.
    pub kernels: Vec<(usize, ClaimedInstIndex)>,
}

impl Flow {
    /// Puts together what instructions say, and the jumps that were found.
    pub fn new(
        question: &Question<'_>,
        code: &ClaimedCode,
        seams: &BTreeSet<Seam>,
        jumps: &[ComputedJump],
    ) -> Flow {
        let mut flow = Flow {
            successors: IndexVec::filled(Vec::new(), code.items().len()),
            predecessors: IndexVec::filled(Vec::new(), code.items().len()),
            entered_from_elsewhere: HashSet::new(),
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
                flow.entered_from_elsewhere.extend(index(item.end()));
            } else if let Some(to) =
                index(item.end()).filter(|_| item.facts.falls_through && !is_call)
            {
                flow.add(at, to);
            }
        }
        for (from, to) in jumps {
            if let (Some(from), Some(to)) = (index(*from), index(*to)) {
                flow.add(from, to);
            }
        }
        let jumped_to = flow.add_indirect(question, code, seams);
        for seam in seams {
            let Some(start) = index(seam.start) else { continue };
            let is_function = is_device_function(question, seam.to);
            match seam.from {
                SeamOrigin::Kernel(kernel) => flow.kernels.push((kernel, start)),
                SeamOrigin::Address if !is_function && jumped_to.contains(&seam.to) => {}
                SeamOrigin::Flow if !is_function => {}
                SeamOrigin::Address | SeamOrigin::Flow | SeamOrigin::Old => {
                    flow.entered_from_elsewhere.insert(start);
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

    /// Original jumps by addresses in registers that flow has resolved; gives where they go.
    fn add_indirect(
        &mut self,
        question: &Question<'_>,
        code: &ClaimedCode,
        seams: &BTreeSet<Seam>,
    ) -> HashSet<InstIndex> {
        let mut targets = HashSet::new();
        for block in &question.program.blocks {
            let place = question.place(block.last());
            let Some(from) = place.and_then(|pc| code.index_at(pc.0)) else { continue };
            if code.items()[from].facts.opcode() != Opcode::SSetpc {
                continue;
            }
            for edge in &block.successors {
                let to = question.program.blocks[edge.to].instructions.start;
                targets.insert(to);
                for seam in seams.iter().filter(|seam| seam.to == to) {
                    if let Some(start) = code.index_at(seam.start) {
                        self.add(from, start);
                    }
                }
            }
        }
        targets
    }

    /// Where control goes from an instruction; not into functions that it calls.
    pub fn successors(&self, at: ClaimedInstIndex) -> &[ClaimedInstIndex] {
        &self.successors[at]
    }

    /// Where control comes from to an instruction.
    pub fn predecessors(&self, at: ClaimedInstIndex) -> &[ClaimedInstIndex] {
        &self.predecessors[at]
    }

    /// The instructions after calls and at the beginning of device functions.
    pub fn entered_from_elsewhere(&self) -> impl Iterator<Item = ClaimedInstIndex> {
        self.entered_from_elsewhere.iter().copied()
    }
}

/// Whether an original instruction is the first of a function that is no kernel.
fn is_device_function(question: &Question<'_>, index: InstIndex) -> bool {
    let function = &question.program.functions[question.program.function_of(index)];
    function.instructions.start == index && function.kernel.is_none()
}
