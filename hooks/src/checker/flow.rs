//! Where control goes in the new code, instruction by instruction.

use super::Question;
use super::code::{Code, Owner};
use super::originals::{Origin, Seam};
use super::seam::Jump;
use crate::flow::InstIndex;
use flipwave_isa::Opcode;
use std::collections::{BTreeSet, HashSet};

/// Successors and predecessors of the instructions of the new code, by their indices.
pub struct Flow {
    successors: Vec<Vec<u32>>,
    predecessors: Vec<Vec<u32>>,
    /// Instructions to which control comes from somewhere that is not followed: device functions
    /// and what is behind calls.
    entered_from_elsewhere: HashSet<u32>,
    /// First instruction of each kernel, by the kernel's index in the original code object.
    pub kernels: Vec<(usize, u32)>,
    /// What calls, and whom: an instruction of the new code where that is known.
    pub calls: Vec<(u32, Option<u32>)>,
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
            successors: vec![Vec::new(); code.items().len()],
            predecessors: vec![Vec::new(); code.items().len()],
            entered_from_elsewhere: HashSet::new(),
            kernels: Vec::new(),
            calls: Vec::new(),
        };
        let index = |pc: u64| code.index_at(pc).map(|index| index as u32);
        for (at, item) in (0..).zip(code.items()) {
            let is_call = item.facts.inst.flags.call;
            let target = item.facts.target(item.pc).and_then(index);
            if let (Some(to), false) = (target, is_call) {
                flow.add(at, to);
            }
            if is_call && !item.is_inserted() {
                flow.calls.push((at, target));
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

    fn add(&mut self, from: u32, to: u32) {
        let (Some(successors), Some(predecessors)) =
            (self.successors.get_mut(from as usize), self.predecessors.get_mut(to as usize))
        else {
            return;
        };
        if !successors.contains(&to) {
            successors.push(to);
            predecessors.push(from);
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
            let Some(last) = block.instructions.end.checked_sub(1).map(InstIndex) else { continue };
            let item = question.place(last).and_then(|pc| code.index_at(pc.0));
            let Some((from, item)) = item.and_then(|at| Some((at, code.items().get(at)?))) else {
                continue;
            };
            if item.facts.opcode() != Opcode::SSetpc {
                continue;
            }
            for edge in &block.successors {
                let Some(next) = question.program.blocks.get(edge.to.0 as usize) else { continue };
                let to = InstIndex(next.instructions.start);
                targets.insert(to);
                for seam in seams.iter().filter(|seam| seam.to == to) {
                    if let Some(start) = code.index_at(seam.start) {
                        self.add(from as u32, start as u32);
                    }
                }
            }
        }
        targets
    }

    /// Where control goes from an instruction; not into functions that it calls.
    pub fn successors(&self, at: u32) -> &[u32] {
        self.successors.get(at as usize).map_or(&[], Vec::as_slice)
    }

    /// Where control comes from to an instruction.
    pub fn predecessors(&self, at: u32) -> &[u32] {
        self.predecessors.get(at as usize).map_or(&[], Vec::as_slice)
    }

    /// The instructions behind calls and at the beginning of device functions.
    pub fn entered_from_elsewhere(&self) -> impl Iterator<Item = u32> {
        self.entered_from_elsewhere.iter().copied()
    }
}

/// Whether an original instruction is the first of a function that is no kernel.
fn is_device_function(question: &Question<'_>, index: InstIndex) -> bool {
    let functions = &question.program.functions;
    let at = functions.binary_search_by_key(&index.0, |own| own.instructions.start);
    at.is_ok_and(|at| functions.get(at).is_some_and(|own| own.kernel.is_none()))
}

/// The original instruction at an item, if it is one.
pub fn original(code: &Code, at: u32) -> Option<InstIndex> {
    match code.items().get(at as usize)?.owner {
        Owner::Original(index) => Some(index),
        Owner::Inserted(_) => None,
    }
}
