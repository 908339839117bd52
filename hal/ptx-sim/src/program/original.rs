//! Rewritten code and the code that it replaces.

use flipwave_arch::{Pc, RegisterId};
use flipwave_ptx::{Code, INSTRUCTION_BYTES, Inst, Origin, PREDICATES, WORDS, pc_of};
use std::sync::Arc;

/// Counting of inserted instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// Inserted instructions are part of the program, and count as others.
    Counted,
    /// Inserted instructions are executed but not counted: waves take turns, clocks and the watchdog run as
    /// without them.
    Free,
}

/// The code that rewritten code replaces. Observers see this code.
pub(crate) struct Original {
    /// The code, with emulated instructions in place of those that represent them.
    pub code: Arc<Code>,
    /// Origin of each instruction of the rewritten code.
    pub origins: Vec<Origin>,
    /// Counting of inserted instructions.
    pub inserted: Inserted,
    /// By instruction of the original code: `true` if it is in a block, but not the first.
    inside: Vec<bool>,
    /// Registers that have other numbers in the rewritten code: the first, their number, and the new first.
    moved: Vec<(RegisterId, u16, u16)>,
}

impl Original {
    /// The original of rewritten code.
    pub fn new(
        code: &Arc<Code>,
        inside: Vec<bool>,
        rewritten: &Code,
        origins: &[Origin],
        inserted: Inserted,
    ) -> Original {
        let mut moved = Vec::new();
        for function in &code.functions {
            let Some(new) = rewritten.function(&function.name) else { continue };
            for (class, old, new) in [
                (&WORDS, &function.words, new.words.start),
                (&PREDICATES, &function.predicates, new.predicates.start),
            ] {
                if old.start != new {
                    moved.push((RegisterId { class, number: old.start }, old.end - old.start, new));
                }
            }
        }
        let (code, origins) = (Arc::clone(code), origins.to_vec());
        Original { code, origins, inserted, inside, moved }
    }

    /// The original instruction at the place of an instruction of the rewritten code.
    pub fn inst(&self, number: usize) -> Option<&Inst> {
        self.code.at(self.origins.get(number)?.pc()?)
    }

    /// Returns `true` if the turn of a wave does not end before the instruction with a number.
    pub fn continues_turn(&self, number: usize) -> bool {
        if self.origins[number] == Origin::After || self.is_inside_emulated(number) {
            return true;
        }
        let original = self.code.number_of(self.pc(pc_of(number)));
        original.is_some_and(|original| self.inside[original])
    }

    /// Returns `true` for instructions after the first of the code that replaces an emulated instruction.
    pub fn is_inside_emulated(&self, number: usize) -> bool {
        let before = number.checked_sub(1).map(|before| self.origins[before]);
        let pc = self.origins[number].pc();
        matches!(before, Some(Origin::Emulated(found)) if pc == Some(found))
    }

    /// Returns `true` for the first instruction of the code that replaces an emulated instruction.
    pub fn begins_emulated(&self, number: usize) -> bool {
        matches!(self.origins[number], Origin::Emulated(_)) && !self.is_inside_emulated(number)
    }

    /// The address in the original code of the instruction at an address, or of the next original one.
    pub fn pc(&self, pc: Pc) -> Pc {
        let number = usize::try_from(pc.0 / u64::from(INSTRUCTION_BYTES)).ok();
        let rest = number.and_then(|number| self.origins.get(number..));
        let origin = rest.and_then(|rest| rest.iter().find_map(|origin| origin.pc()));
        origin.unwrap_or(pc)
    }

    /// The address in the rewritten code of an original instruction, or of what was inserted before it.
    pub fn moved_pc(&self, pc: Pc) -> Pc {
        let Some(number) = self.origins.iter().position(|found| *found == Origin::Original(pc))
        else {
            return pc;
        };
        let before = self.origins[..number].iter().rev();
        let inserted = [Origin::Before, Origin::Emulated(pc)];
        pc_of(number - before.take_while(|origin| inserted.contains(origin)).count())
    }

    /// The register of the rewritten code that an original register has become.
    pub fn moved_register(&self, register: RegisterId) -> RegisterId {
        let is_moved = |(first, count, _): &&(RegisterId, u16, u16)| {
            let offset = register.number.checked_sub(first.number);
            first.class.rank == register.class.rank && offset.is_some_and(|offset| offset < *count)
        };
        match self.moved.iter().find(is_moved) {
            Some((first, _, new)) => {
                RegisterId { number: new + (register.number - first.number), ..register }
            }
            None => register,
        }
    }
}
