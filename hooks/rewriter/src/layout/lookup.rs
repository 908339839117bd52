//! Finds instructions and functions by address.

use super::stream::Label;
use crate::flow::{Disassembly, FunctionIndex, IndexVec, InstIndex, Key};
use flipwave_isa::Pc;

/// Finds instructions and functions of a program by address.
pub(super) struct Lookup<'a> {
    program: &'a Disassembly,
    /// Old addresses of the instructions.
    pub addresses: IndexVec<InstIndex, Pc>,
}

impl<'a> Lookup<'a> {
    /// Indexes a program.
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

    /// Label of an instruction for references from other functions: the entry of the function for its
    /// first instruction.
    pub fn code_label(&self, index: InstIndex) -> Label {
        let function = self.function_of(index);
        if self.program.functions[function].instructions.start == index {
            Label::Entry(function)
        } else {
            Label::Inst(index)
        }
    }

    /// Label of `to` for a branch at `from`. A branch to the start of its own function skips the code
    /// that runs once; a branch to another function goes to its entry.
    pub fn label_from(&self, from: InstIndex, to: InstIndex) -> Label {
        if self.function_of(from) == self.function_of(to) {
            Label::Inst(to)
        } else {
            self.code_label(to)
        }
    }
}
