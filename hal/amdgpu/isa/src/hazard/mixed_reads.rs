//! What is known of scalar registers in a program with inserted code. Compilers keep by themselves that no
//! register is read before it has arrived; what inserted code has a part in is the rewriter's.

use super::{ScalarReads, ScalarWait};
use crate::Inst;

/// What is known of the scalar registers of a wave, and how much of that inserted code has a part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixedReads {
    all: ScalarReads,
    /// What inserted code has read, and what may not have arrived because inserted code has read or
    /// written it, or because an instruction is gone.
    inserted: ScalarReads,
}

/// Whose an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The program's.
    Program,
    /// The rewriter's.
    Rewriter,
}

impl MixedReads {
    /// At the beginning of a wave.
    pub fn new(begin: ScalarReads) -> MixedReads {
        MixedReads { all: begin, inserted: begin }
    }

    /// The same where control comes from elsewhere: anything may have been read, what inserted code reads
    /// anywhere by that, and all that was written has arrived.
    #[must_use]
    pub fn called<'i>(
        begin: ScalarReads,
        inserted: impl IntoIterator<Item = &'i Inst>,
    ) -> MixedReads {
        let mut reads = begin;
        for inst in inserted {
            let mut own = begin;
            own.execute(inst);
            reads.read |= own.read;
        }
        MixedReads { all: begin.called(), inserted: reads }
    }

    /// What an instruction needs before it that the program does not have by itself. Compilers have all
    /// arrive before control leaves a function.
    pub fn needed(&self, inst: &Inst, author: Author) -> ScalarWait {
        match author {
            Author::Rewriter => self.all.needed(inst),
            Author::Program if inst.leaves_function() => self.inserted.pending(),
            Author::Program => {
                let mut late = self.inserted;
                late.read = self.all.read;
                late.needed(inst)
            }
        }
    }

    /// The same after a wait.
    #[must_use]
    pub fn after(self, wait: ScalarWait) -> MixedReads {
        MixedReads { all: self.all.after(wait), inserted: self.inserted.after(wait) }
    }

    /// Executes an instruction.
    pub fn execute(&mut self, inst: &Inst, author: Author) {
        let is_inserted = author == Author::Rewriter;
        // Whatever was read, what inserted code writes is its own.
        let read = if is_inserted { self.all.read } else { self.inserted.read };
        self.inserted.surely_read = self.all.surely_read;
        self.inserted.step(inst, read, is_inserted);
        self.all.execute(inst);
        if !is_inserted && inst.leaves_function() {
            *self = self.after(self.all.pending());
        }
    }

    /// Passes over an instruction of the program that is gone: what it would have ended goes on.
    pub fn pass_removed(&mut self, inst: &Inst) {
        let (all, mut without) = (self.all, self.all);
        without.execute(inst);
        let inserted = &mut self.inserted;
        inserted.read |= all.read & !without.read;
        inserted.by_salu |= all.by_salu & !without.by_salu;
        inserted.by_valu |= all.by_valu & !without.by_valu;
        inserted.vcc_by_salu |= all.vcc_by_salu && !without.vcc_by_salu;
        inserted.vcc_by_valu |= all.vcc_by_valu && !without.vcc_by_valu;
    }

    /// What may be on either of two ways; whether that is more than on this one.
    pub fn join(&mut self, other: &MixedReads) -> bool {
        self.all.join(&other.all) | self.inserted.join(&other.inserted)
    }
}
