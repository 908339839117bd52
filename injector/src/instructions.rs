//! The static instructions that a dispatch executed, numbered as they are first seen.

use crate::destinations::Destinations;
use crate::{FaultModel, Group};
use flipwave_isa::{Inst, Pc};
use std::collections::HashMap;

/// The instructions of one dispatch.
pub(crate) struct Instructions<'a> {
    groups: &'a [Group],
    model: FaultModel,
    entries: Vec<Instruction>,
    by_pc: HashMap<Pc, usize>,
    /// The instruction seen last: the next one is most often the one first seen after it.
    last: usize,
}

/// One static instruction.
pub(crate) struct Instruction {
    pub pc: Pc,
    pub text: String,
    pub opcode: &'static str,
    pub group: Group,
    /// Empty for instructions that no selected group matches.
    pub destinations: Destinations,
}

impl<'a> Instructions<'a> {
    /// No instructions yet; those of `groups` will have destinations.
    pub fn new(groups: &'a [Group], model: FaultModel) -> Instructions<'a> {
        Instructions { groups, model, entries: Vec::new(), by_pc: HashMap::new(), last: 0 }
    }

    /// The number of `inst`, a new one if it was not seen before.
    pub fn number(&mut self, inst: &Inst) -> usize {
        let successor = self.last + 1;
        let is_successor = self.entries.get(successor).is_some_and(|entry| entry.pc == inst.pc);
        self.last = if is_successor {
            successor
        } else if let Some(&known) = self.by_pc.get(&inst.pc) {
            known
        } else {
            self.add(inst)
        };
        self.last
    }

    fn add(&mut self, inst: &Inst) -> usize {
        let selected = self.groups.iter().any(|group| group.matches(inst));
        let number = self.entries.len();
        self.by_pc.insert(inst.pc, number);
        self.entries.push(Instruction {
            pc: inst.pc,
            text: inst.text.clone(),
            opcode: inst.operation.name(),
            group: Group::primary(inst),
            destinations: if selected {
                Destinations::of(inst, self.model)
            } else {
                Destinations::none(self.model)
            },
        });
        number
    }

    /// The instruction of a number that [`Instructions::number`] gave.
    pub fn get(&self, number: usize) -> &Instruction {
        &self.entries[number]
    }

    /// All instructions, in the order of their numbers.
    pub fn into_entries(self) -> Vec<Instruction> {
        self.entries
    }
}
