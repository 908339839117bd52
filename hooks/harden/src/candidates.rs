//! The instructions of a code object that can be executed twice.

use crate::chains::Block;
use crate::plan::{Comparing, Plan};
use crate::{HardenError, Reason};
use flipwave_codeobj::CodeObject;
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::rewrite::Instrumentation;
use flipwave_isa::Pc;
use std::collections::{BTreeMap, BTreeSet};

/// An instruction that can be executed twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its text.
    pub text: String,
    /// Instructions that its copy takes.
    pub copy: u32,
    /// Instructions that comparing its results takes, with the wait for what is loaded.
    pub comparison: u32,
    /// Where all of these are executed twice, its results need not be compared: nothing else reads
    /// them. Nothing where something else may, or nobody does.
    pub readers: Option<BTreeSet<Pc>>,
}

/// The instructions of a code object that can be executed twice.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// Those that can be, by their addresses.
    pub instructions: BTreeMap<Pc, Candidate>,
    /// The others, and why not.
    pub others: BTreeMap<Pc, Reason>,
}

impl Candidates {
    /// Looks at all code that kernels come to.
    ///
    /// # Errors
    /// [`HardenError`] for code that cannot be changed.
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
                    readers: readers.map(|own| own.into_iter().map(pc).collect()),
                };
                instructions.insert(pc(at), candidate);
            }
        }
        let others = left_out.into_iter().map(|(at, reason)| (pc(at), reason)).collect();
        Ok(Candidates { instructions, others })
    }
}
