//! The instructions of a code object that can be executed twice.

use crate::harden::Plan;
use crate::{HardenError, Reason};
use flipwave_codeobj::CodeObject;
use flipwave_hooks::rewrite::Instrumentation;
use flipwave_isa::Pc;
use std::collections::BTreeMap;

/// An instruction that can be executed twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its text.
    pub text: String,
    /// Instructions that it takes more then, without waits.
    pub instructions: u32,
}

/// The instructions of a code object that can be executed twice, each by itself.
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
        let plan = Plan::new(&mut instrumentation, &all, true)?;
        let mut candidates = Candidates::default();
        for (at, duplicate) in plan.duplicates {
            let inst = &program.instructions[at];
            let (text, instructions) = (inst.text.trim().to_owned(), duplicate.instructions);
            candidates.instructions.insert(inst.pc, Candidate { text, instructions });
        }
        let others = plan.left_out.into_iter();
        candidates.others = others.map(|(at, own)| (program.instructions[at].pc, own)).collect();
        Ok(candidates)
    }
}
