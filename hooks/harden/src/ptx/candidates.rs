//! Finds the instructions of a module that can be duplicated.

use super::chains::Block;
use super::program::Program;
use crate::{Candidate, Candidates, HardenError};
use flipwave_ptx::Module;

/// Finds the candidates in all code that kernels can reach.
///
/// # Errors
/// [`HardenError`] if the module cannot be rewritten.
pub fn candidates(module: &Module) -> Result<Candidates, HardenError> {
    let (_, program) = Program::of(module)?;
    let mut found = Candidates::default();
    for (function, number, instructions) in program.blocks() {
        if !program.functions[function].is_reachable {
            continue;
        }
        let block = Block { program: &program, function, number, instructions };
        for at in block.instructions.clone() {
            let Some(results) = program.results.get(&at) else { continue };
            let readers = block.readers(at, &|reader| program.results.contains_key(&reader));
            let pc = |at: usize| program.pc(at);
            let candidate = Candidate {
                text: program.code.instructions[at].text().to_owned(),
                copy: 1,
                comparison: results.iter().map(|result| result.width.instructions()).sum(),
                readers: readers.map(|readers| readers.into_iter().map(pc).collect()),
            };
            found.instructions.insert(program.pc(at), candidate);
        }
    }
    found.others = program.others.iter().map(|(at, reason)| (program.pc(*at), *reason)).collect();
    Ok(found)
}
