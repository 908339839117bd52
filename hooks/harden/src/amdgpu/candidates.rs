//! Finds the instructions of a code object that can be duplicated.

use super::chains::Block;
use super::plan::Plan;
use crate::{Candidate, Candidates, Comparing, HardenError};
use flipwave_codeobj::CodeObject;
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::rewrite::Instrumentation;
use std::collections::BTreeMap;

/// Finds the candidates in all code that kernels can reach.
///
/// # Errors
/// [`HardenError`] if the code cannot be rewritten.
pub fn candidates(object: &CodeObject) -> Result<Candidates, HardenError> {
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
