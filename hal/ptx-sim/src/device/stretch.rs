//! Blocks as observers see them.

use crate::program::{Op, Program, Step};
use flipwave_arch::{Instruction, Pc};
use flipwave_machine::{Stretch, StretchPart};

/// A block of a program.
pub(super) struct PtxStretch<'a> {
    number: u64,
    steps: &'a [Step],
}

impl<'a> PtxStretch<'a> {
    /// The block that begins at an instruction, if one does.
    pub fn at(program: &'a Program, number: usize) -> Option<PtxStretch<'a>> {
        let blocks = &program.blocks;
        let (block, _) = blocks.at(number)?;
        let steps = &program.steps[blocks.all[block].instructions.clone()];
        Some(PtxStretch { number: blocks.first_number + block as u64, steps })
    }

    /// The instructions.
    pub fn steps(&self) -> &'a [Step] {
        self.steps
    }
}

impl Stretch for PtxStretch<'_> {
    fn number(&self) -> u64 {
        self.number
    }

    /// Guarded instructions choose their lanes; the branch at the end is a part of its own.
    fn has_own_lanes(&self) -> bool {
        let is_branch = |step: &Step| matches!(step.op, Op::Branch { .. });
        self.steps.iter().any(|step| step.inst.guard.is_some() && !is_branch(step))
    }

    fn instruction_count(&self) -> u64 {
        self.steps.len() as u64
    }

    fn has_instruction_at(&self, pc: Pc) -> bool {
        self.steps.iter().any(|step| step.inst.pc == pc)
    }

    fn for_each_instruction<'s>(&'s self, visit: &mut dyn FnMut(&'s dyn Instruction)) {
        self.steps.iter().for_each(|step| visit(&step.inst));
    }

    fn for_each_part<'s>(&'s self, visit: &mut dyn FnMut(StretchPart<'s>)) {
        for step in self.steps {
            visit(StretchPart { inst: &step.inst, is_after_change: step.inst.guard.is_some() });
        }
    }
}
