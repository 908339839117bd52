//! Proves that rewritten code preserves the original program.
//!
//! The rewriter reports where each original instruction is now and which code it inserted
//! ([`Claims`]). The checker decodes the new code itself and proves the following rules:
//!
//! 1. **Original.** Each original instruction has its original bytes at its claimed address, except
//!    for branch distances and the literals of PC-relative addresses. Branches and addresses refer to
//!    their original targets: an address of code may refer to inserted code from which control
//!    reaches the original target by rule 2.
//! 2. **Control.** All code is either original or claimed as inserted. After an original instruction,
//!    and from each entry, control passes through inserted code to the original successor and to no
//!    other original instruction. The successors of a removed instruction take its place. Inserted
//!    code does not end a wave and does not contain a barrier. Where old code remains in place,
//!    inserted code only overwrites instructions that control no longer reaches; in a function with
//!    unresolved control flow, every old address still leads to its instruction.
//! 3. **Registers.** A path of rule 2 is a *splice*. Splices are executed symbolically. At the end of
//!    a splice, each live register has its initial value, in the lanes that EXEC selects and in the
//!    other lanes, unless a hook was requested to change the register. EXEC is restored.
//! 4. **Waits.** No instruction reads or overwrites a register with an outstanding memory operation,
//!    if the instruction or the operation is inserted. An original wait for at most *n* operations
//!    of a counter still guarantees that at most *n* original operations are outstanding, although
//!    inserted code has added younger operations.
//! 5. **Hazards.** No instruction follows another one more closely than the hardware's manual hazards
//!    allow, if one of the two is inserted.
//! 6. **Groups.** Clauses are contiguous, and delay hints precede the instructions they describe.
//! 7. **Allocation.** Each kernel's descriptor allocates all registers named by reachable code, and
//!    the scratch that the code uses.
//! 8. **Chip bugs.** No inserted instruction triggers a known bug of the processor.
//!
//! The checker trusts the decoder, [`crate::flow`] and [`crate::dataflow`], which have their own
//! tests. It assumes that stores of inserted code do not overwrite the scratch slots in which the
//! inserted code saves original values. It does not check other effects of hooks on memory.

mod allocation;
mod chip_bugs;
mod code;
mod context;
mod entry;
mod facts;
mod finding;
mod flow;
mod groups;
mod hazards;
mod originals;
mod scalar_reads;
mod splice;
#[cfg(test)]
mod tests;
mod waits;

pub use context::{Claims, Inserted};
pub use finding::{CheckRule, Finding, Proof};

use crate::dataflow::Live;
use crate::flow::{Disassembly, InstIndex};
use code::{ClaimedCode, Owner};
use context::CheckContext;
use facts::FactDecoder;
use flipwave_codeobj::CodeObject;
use flipwave_isa::Rules;
use flow::Flow;
use std::time::Instant;

/// Checks `new` against the `original` code object it was made from, using the target's `rules`.
///
/// `program` is the disassembly of `original`, and `live` returns the registers that are live before
/// an original instruction ([`crate::dataflow`]).
///
/// # Errors
/// Returns all violations, sorted by address and rule.
pub fn check(
    rules: Rules,
    original: &CodeObject,
    program: &Disassembly,
    live: &dyn Fn(InstIndex) -> Live,
    new: &CodeObject,
    claims: &Claims,
) -> Result<Proof, Vec<Finding>> {
    let start = Instant::now();
    let (claimed, count) = (claims.instructions.len(), program.instructions.len());
    if claimed != count {
        let message = format!("{claimed} instructions claimed, but the original has {count}");
        return Err(vec![Finding::at(CheckRule::Original, 0, message)]);
    }
    let context = CheckContext { rules, original, program, live, new, claims };
    let isa = program
        .isa()
        .map_err(|error| vec![Finding::at(CheckRule::Original, 0, error.to_string())])?;
    let mut findings = Vec::new();
    let mut decoder = FactDecoder::new(isa, rules.counters);
    let code = ClaimedCode::read(&context, &mut decoder, &mut findings);
    code::check_gaps(&context, &code, &mut findings);
    let splices = originals::check(&context, &code, &mut findings);
    let (mut proof, jumps) = splice::check(&context, &code, &splices, &mut findings);
    let flow = Flow::new(&context, &code, &splices, &jumps);
    waits::check(&context, &code, &flow, &mut findings);
    proof.hazards = hazards::check(&context, &code, &flow, &mut findings);
    scalar_reads::check(&context, &code, &flow, &mut findings);
    groups::check(&context, &code, &mut findings);
    chip_bugs::check(&code, &mut findings);
    allocation::check(&context, &code, &flow, &mut findings);
    let is_inserted = |owner: Owner| matches!(owner, Owner::Inserted(_));
    proof.inserted = code.items().iter().filter(|item| is_inserted(item.owner)).count();
    proof.originals = code.items().len() - proof.inserted;
    proof.cost = start.elapsed();
    if findings.is_empty() {
        return Ok(proof);
    }
    findings.sort_by(|a, b| (a.new, a.rule, &a.message).cmp(&(b.new, b.rule, &b.message)));
    findings.dedup();
    Err(findings)
}
