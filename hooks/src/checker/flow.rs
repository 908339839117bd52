//! Where control goes in the new code, instruction by instruction.

use super::Question;
use super::code::{Code, ItemIndex};
use super::originals::{Origin, Seam};
use super::seam::Jump;
use crate::flow::{IndexVec, InstIndex};
use flipwave_isa::Opcode;
use std::collections::{BTreeSet, HashSet};

/// Successors and predecessors of the instructions of the new code, by their indices.
pub struct Flow {
    successors: IndexVec<ItemIndex, Vec<ItemIndex>>,
    predecessors: IndexVec<ItemIndex, Vec<ItemIndex>>,
    /// Instructions to which control comes from somewhere that is not followed: device functions
    /// and what is behind calls.
    entered_from_elsewhere: HashSet<ItemIndex>,
    /// First instruction of each kernel, by the kernel's index in the original code object.
    pub kernels: Vec<(usize, ItemIndex)>,
}

impl Flow {
    /// Puts together what instructions say, and the jumps that were found.
    pub fn new(
        question: &Question<'_>,
        code: &Code,
        seams: &BTreeSet<Seam>,
        jumps: &[Jump],
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
                Origin::Kernel(kernel) => flow.kernels.push((kernel, start)),
                Origin::Address if !is_function && jumped_to.contains(&seam.to) => {}
                Origin::Flow if !is_function => {}
                Origin::Address | Origin::Flow | Origin::Old => {
                    flow.entered_from_elsewhere.insert(start);
                }
            }
        }
        flow
    }

    fn add(&mut self, from: ItemIndex, to: ItemIndex) {
        if !self.successors[from].contains(&to) {
            self.successors[from].push(to);
            self.predecessors[to].push(from);
        }
    }

    /// Original jumps by addresses in registers that flow has resolved; gives where they go.
    fn add_indirect(
        &mut self,
        question: &Question<'_>,
        code: &Code,
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
    pub fn successors(&self, at: ItemIndex) -> &[ItemIndex] {
        &self.successors[at]
    }

    /// Where control comes from to an instruction.
    pub fn predecessors(&self, at: ItemIndex) -> &[ItemIndex] {
        &self.predecessors[at]
    }

    /// The instructions behind calls and at the beginning of device functions.
    pub fn entered_from_elsewhere(&self) -> impl Iterator<Item = ItemIndex> {
        self.entered_from_elsewhere.iter().copied()
    }
}

/// Whether an original instruction is the first of a function that is no kernel.
fn is_device_function(question: &Question<'_>, index: InstIndex) -> bool {
    let function = &question.program.functions[question.program.function_of(index)];
    function.instructions.start == index && function.kernel.is_none()
}
