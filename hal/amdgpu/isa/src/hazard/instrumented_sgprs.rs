//! SGPR hazards in a program with inserted code. Compilers insert the waits that the original code needs;
//! the rewriter must insert those that inserted code makes necessary.

use super::sgpr_hazards::ReadRecording;
use super::{SgprHazardState, SgprWait};
use crate::Inst;

/// The SGPR hazard state of a wave in a program with inserted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstrumentedSgprState {
    /// The state due to all code.
    all: SgprHazardState,
    /// The state due to inserted code: the registers that inserted code has read, and the writes that are
    /// pending because inserted code has read or written the register or because an instruction was
    /// removed.
    inserted: SgprHazardState,
}

/// The origin of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The original program.
    Original,
    /// The rewriter.
    Inserted,
}

impl InstrumentedSgprState {
    /// The state of a wave with the initial state `initial`.
    pub fn new(initial: SgprHazardState) -> InstrumentedSgprState {
        InstrumentedSgprState { all: initial, inserted: initial }
    }

    /// The state where control arrives from unknown code: all registers may have been read, inserted
    /// code may have read every register that an instruction in `inserted` reads, and all writes have arrived.
    #[must_use]
    pub fn entered<'i>(
        initial: SgprHazardState,
        inserted: impl IntoIterator<Item = &'i Inst>,
    ) -> InstrumentedSgprState {
        let mut inserted_state = initial;
        for inst in inserted {
            let mut single = initial;
            single.execute(inst);
            inserted_state.read |= single.read;
        }
        InstrumentedSgprState { all: initial.called(), inserted: inserted_state }
    }

    /// The wait that an instruction needs before it and that the original program does not have. Compilers
    /// wait for all pending writes before control leaves a function.
    pub fn required_wait(&self, inst: &Inst, origin: Origin) -> SgprWait {
        match origin {
            Origin::Inserted => self.all.required_wait(inst),
            Origin::Original if inst.leaves_function() => self.inserted.pending(),
            Origin::Original => {
                let mut state = self.inserted;
                state.read = self.all.read;
                state.required_wait(inst)
            }
        }
    }

    /// The state after a wait.
    #[must_use]
    pub fn after_wait(self, wait: SgprWait) -> InstrumentedSgprState {
        InstrumentedSgprState {
            all: self.all.after_wait(wait),
            inserted: self.inserted.after_wait(wait),
        }
    }

    /// Executes an instruction.
    pub fn execute(&mut self, inst: &Inst, origin: Origin) {
        // Writes by inserted code become pending regardless of which code has read the register.
        let (read, recording) = match origin {
            Origin::Inserted => (self.all.read, ReadRecording::Record),
            Origin::Original => (self.inserted.read, ReadRecording::Ignore),
        };
        self.inserted.read_on_all_paths = self.all.read_on_all_paths;
        self.inserted.step(inst, read, recording);
        self.all.execute(inst);
        if origin == Origin::Original && inst.leaves_function() {
            *self = self.after_wait(self.all.pending());
        }
    }

    /// Skips an instruction of the original program that was removed: reads and pending writes that it would
    /// have resolved are attributed to inserted code.
    pub fn skip_removed(&mut self, inst: &Inst) {
        let (all, mut executed) = (self.all, self.all);
        executed.execute(inst);
        let inserted = &mut self.inserted;
        inserted.read |= all.read & !executed.read;
        inserted.pending_salu |= all.pending_salu & !executed.pending_salu;
        inserted.pending_valu |= all.pending_valu & !executed.pending_valu;
        inserted.vcc_pending_salu |= all.vcc_pending_salu && !executed.vcc_pending_salu;
        inserted.vcc_pending_valu |= all.vcc_pending_valu && !executed.vcc_pending_valu;
    }

    /// Joins the state of another path. Returns `true` if this state changed.
    pub fn join(&mut self, other: &InstrumentedSgprState) -> bool {
        self.all.join(&other.all) | self.inserted.join(&other.inserted)
    }
}
