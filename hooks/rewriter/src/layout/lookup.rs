//! What belongs to what in a program.

use super::stream::Label;
use crate::flow::{Disassembly, FunctionIndex, IndexVec, InstIndex, Key};
use flipwave_isa::Pc;

/// The program's instructions and functions by address.
pub(super) struct Lookup<'a> {
    program: &'a Disassembly,
    /// Old addresses of the instructions.
    pub addresses: IndexVec<InstIndex, Pc>,
}

impl<'a> Lookup<'a> {
    pub fn new(program: &'a Disassembly) -> Lookup<'a> {
        Lookup { program, addresses: program.instructions.iter().map(|inst| inst.pc).collect() }
    }

    /// The instruction at an address.
    pub fn at(&self, pc: Pc) -> Option<InstIndex> {
        self.addresses.binary_search(&pc).ok().map(InstIndex::new)
    }

    /// The function that an instruction belongs to.
    pub fn function_of(&self, index: InstIndex) -> FunctionIndex {
        self.program.function_of(index)
    }

    /// What an address of code stands for, seen from anywhere: the entry of a function where one
    /// begins.
    pub fn code_label(&self, index: InstIndex) -> Label {
        let function = self.function_of(index);
        match self.program.functions[function].instructions.start == index {
            true => Label::Entry(function),
            false => Label::Inst(index),
        }
    }

    /// Where control goes by a branch from one instruction to another: back to the first
    /// instruction of its own function without what runs once, into another by its entry.
    pub fn way(&self, from: InstIndex, to: InstIndex) -> Label {
        if self.function_of(from) == self.function_of(to) {
            Label::Inst(to)
        } else {
            self.code_label(to)
        }
    }
}
