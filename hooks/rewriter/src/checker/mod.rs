//! Proves on rewritten code what the rewriter must keep.
//!
//! The rewriter says where each original instruction is now and which code it inserted
//! ([`Claims`]). The checker decodes the new code itself and proves:
//!
//! 1. **Original.** At its claimed place each original instruction has its bytes, but for the
//!    distance of a branch and the literals of an address computed from the PC. Those name what
//!    they named: for code, a place from which control comes to the original target by rule 2.
//! 2. **Control.** All code that is not original is claimed as inserted. From an original
//!    instruction, and from each entry, control comes through inserted code to the same original
//!    instruction as before and to no other; after an instruction that was removed, to where it
//!    would have gone on. Inserted code neither ends a wave nor meets a barrier. Where old code
//!    stays, what inserted code stands over is no instruction that control still comes to; in a
//!    function that is not understood, every old address leads to its instruction.
//! 3. **Registers.** Such a way is a *seam*. It is executed symbolically, and where it ends each
//!    register that is live there holds what it held at the beginning, in the lanes that
//!    EXEC selects and in the others, unless a hook was asked to change it. EXEC itself is back.
//! 4. **Waits.** On no path does an instruction read or overwrite what a memory operation still
//!    has to deliver, where the operation or the instruction was inserted. Original waits stay as
//!    strict as they were without a look at them: a wait for at most *n* operations of a counter,
//!    to which inserted code has added younger ones, leaves at most *n* of the older ones.
//! 5. **Hazards.** On no path is an instruction closer to another than the hardware's manual
//!    hazards allow, where one of the two was inserted.
//! 6. **Groups.** Clauses are whole; a delay hint is followed by the instructions it is about.
//! 7. **Allocation.** Each kernel's descriptor has all registers that the code reachable from it
//!    names, and the scratch that it uses.
//! 8. **Chip bugs.** No inserted instruction triggers a known bug of the processor.
//!
//! It trusts decoding, [`crate::flow`] and [`crate::dataflow`], which have proofs of their own,
//! and that inserted code's stores do not meet the scratch slots it keeps guest values in. What
//! hooks do to memory is theirs.

mod allocation;
mod chip_bugs;
mod code;
mod entry;
mod facts;
mod finding;
mod flow;
mod groups;
mod hazards;
mod originals;
mod scalar_reads;
mod seam;
#[cfg(test)]
mod tests;
mod waits;

pub use finding::{CheckRule, Finding, Proof};

use crate::dataflow::Live;
use crate::flow::{Disassembly, Function, IndexVec, InstIndex};
use code::{ClaimedCode, Owner};
use facts::FactDecoder;
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Pc, RegisterSet, Rules};
use flow::Flow;
use std::ops::Range;
use std::time::Instant;

/// What the rewriter says it did; the checker believes none of it without looking.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Where each original instruction is now, by its index in the original program; `None` where
    /// it was asked to be removed or replaced, or is a hint that was dropped.
    pub instructions: IndexVec<InstIndex, Option<Pc>>,
    /// Inserted code, by ascending address.
    pub inserted: Vec<Inserted>,
}

impl Claims {
    /// The original instruction that inserted code at an address belongs to.
    pub fn inserted_for(&self, pc: Pc) -> Option<InstIndex> {
        let above = self.inserted.partition_point(|own| own.range.start <= pc.0);
        let inserted = self.inserted.get(above.checked_sub(1)?)?;
        inserted.at.filter(|_| inserted.range.contains(&pc.0))
    }
}

/// Inserted code at one place.
#[derive(Clone, Debug)]
pub struct Inserted {
    /// Where it lies: addresses of the new code object.
    pub range: Range<u64>,
    /// The original instruction that it belongs to; `None` for islands and routines.
    pub at: Option<InstIndex>,
    /// Registers that it was asked to change for good.
    pub changes: RegisterSet,
}

/// What the checker is asked about.
pub(crate) struct Question<'a> {
    rules: Rules,
    original: &'a CodeObject,
    program: &'a Disassembly,
    /// What is live before each original instruction.
    live: &'a dyn Fn(InstIndex) -> Live,
    new: &'a CodeObject,
    claims: &'a Claims,
}

impl Question<'_> {
    /// Where an original instruction is claimed to be.
    fn place(&self, index: InstIndex) -> Option<Pc> {
        self.claims.instructions[index]
    }

    /// The original instruction at an original address.
    fn original_at(&self, pc: u64) -> Option<InstIndex> {
        self.program.at(Pc(pc))
    }

    /// Whether a function is still where it was, in parts at least.
    fn stays(&self, function: &Function) -> bool {
        let insts = &self.program.instructions[function.instructions];
        let extent = insts[0].pc.0..=insts[insts.len() - 1].pc.0;
        function.instructions.iter().any(|index| self.place(index) == Some(self.old(index)))
            || self.claims.inserted.iter().any(|own| extent.contains(&own.range.start))
    }

    /// The address of an original instruction in the original code object.
    fn old(&self, index: InstIndex) -> Pc {
        self.program.instructions[index].pc
    }
}

/// Checks by the target's `rules` `new` against the `original` that it was made from, with the
/// original's `program` and what is live before each of its instructions ([`crate::dataflow`]).
///
/// # Errors
/// Everything that is wrong, by ascending address and rule.
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
        let what = format!("{claimed} instructions are claimed of {count} original ones");
        return Err(vec![Finding::at(CheckRule::Original, 0, what)]);
    }
    let question = Question { rules, original, program, live, new, claims };
    let isa = program
        .isa()
        .map_err(|error| vec![Finding::at(CheckRule::Original, 0, error.to_string())])?;
    let mut findings = Vec::new();
    let mut decoder = FactDecoder::new(isa, rules.counters);
    let code = ClaimedCode::read(&question, &mut decoder, &mut findings);
    code::check_gaps(&question, &code, &mut findings);
    let seams = originals::check(&question, &code, &mut findings);
    let (mut proof, jumps) = seam::check(&question, &code, &seams, &mut findings);
    let flow = Flow::new(&question, &code, &seams, &jumps);
    waits::check(&question, &code, &flow, &mut findings);
    proof.hazards = hazards::check(&question, &code, &flow, &mut findings);
    scalar_reads::check(&question, &code, &flow, &mut findings);
    groups::check(&question, &code, &mut findings);
    chip_bugs::check(&code, &mut findings);
    allocation::check(&question, &code, &flow, &mut findings);
    let is_inserted = |owner: Owner| matches!(owner, Owner::Inserted(_));
    proof.inserted = code.items().iter().filter(|item| is_inserted(item.owner)).count();
    proof.originals = code.items().len() - proof.inserted;
    proof.cost = start.elapsed();
    if findings.is_empty() {
        return Ok(proof);
    }
    findings
        .sort_by(|one, two| (one.new, one.rule, &one.what).cmp(&(two.new, two.rule, &two.what)));
    findings.dedup();
    Err(findings)
}
