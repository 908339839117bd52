//! Finds the instructions of a code object that can be duplicated.

use crate::chains::Block;
use crate::plan::{Comparing, Plan};
use crate::{HardenError, Reason};
use flipwave_codeobj::CodeObject;
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::rewrite::Instrumentation;
use flipwave_isa::Pc;
use std::collections::{BTreeMap, BTreeSet};

/// An instruction that can be duplicated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The instruction in assembly syntax.
    pub text: String,
    /// The number of instructions added by the copy.
    pub copy: u32,
    /// The number of instructions added by the comparison of the results, including waits for loads.
    pub comparison: u32,
    /// The instructions that read the result. If all of them are duplicated too, the result need not be
    /// compared. `None` if there may be other readers, or none.
    pub readers: Option<BTreeSet<Pc>>,
}

/// The instructions of a code object that can be duplicated.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// The instructions that can be duplicated, by address.
    pub instructions: BTreeMap<Pc, Candidate>,
    /// The other instructions, with the reason.
    pub others: BTreeMap<Pc, Reason>,
}

impl Candidates {
    /// Finds the candidates in all code that kernels can reach.
    ///
    /// # Errors
    /// [`HardenError`] if the code cannot be rewritten.
    pub fn of(object: &CodeObject) -> Result<Candidates, HardenError> {
        let mut instrumentation = Instrumentation::new(object)?;
        let program = instrumentation.program().clone();
        let all = program.executable_insts().map(|(at, _)| at).collect();
        let liveness = Liveness::new(&program);
        let Plan { duplicates, left_out, .. } =
            Plan::new(&mut instrumentation, &liveness, &all, Comparing::Each)?;
        let pc = |at: InstIndex| program.instructions[at].pc;
        let mut instructions = BTreeMap::new();
        for block in program.blocks.iter() {
            let block =
                Block { program: &program, liveness: &liveness, instructions: block.instructions };
            for at in block.instructions.iter() {
                let Some(duplicate) = duplicates.get(&at) else { continue };
                let comparison = duplicate.after.lines().count() as u32;
                let waits = u32::from(program.instructions[at].memory().is_some());
                let is_copied = |reader| duplicates.contains_key(&reader);
                let readers = block.readers(at, &duplicate.results, &is_copied);
                let candidate = Candidate {
                    text: program.instructions[at].text.trim().to_owned(),
                    copy: duplicate.instructions - comparison,
                    comparison: comparison + waits,
                    readers: readers.map(|readers| readers.into_iter().map(pc).collect()),
                };
                instructions.insert(pc(at), candidate);
            }
        }
        let others = left_out.into_iter().map(|(at, reason)| (pc(at), reason)).collect();
        Ok(Candidates { instructions, others })
    }
}
