//! The code that a tool instruments.

use super::{EmulatedInst, EmulatedInsts, InstLocation};
use flipwave_codeobj::CodeObject;
use flipwave_device::matching_kernels;
use flipwave_hooks::flow::{Disassembly, FunctionIndex, InstIndex};
use flipwave_isa::Inst;
use std::collections::BTreeSet;

/// The functions of a code object that a tool instruments.
#[derive(Clone, Debug)]
pub struct ToolScope<'a> {
    program: &'a Disassembly,
    functions: Vec<FunctionIndex>,
    emulated: Option<&'a EmulatedInsts>,
}

impl<'a> ToolScope<'a> {
    /// The functions reachable from the kernels that `kernel` selects, or from any kernel if it is `None`:
    /// a name or a pattern as in [`kernel_matches`](flipwave_device::kernel_matches). The scope is empty if
    /// no kernel matches.
    pub fn new(
        object: &CodeObject,
        program: &'a Disassembly,
        kernel: Option<&str>,
    ) -> ToolScope<'a> {
        let all = || program.executable().into_iter().collect();
        let functions = kernel.map_or_else(all, |pattern| {
            let kernels = object.kernels().iter().map(|kernel| &*kernel.name);
            let selected = matching_kernels(kernels, pattern);
            let starts = selected.into_iter().filter_map(|index| program.kernel(index));
            let mut seen = BTreeSet::new();
            let reachable = starts.flat_map(|function| program.reachable(function));
            reachable.filter(|function| seen.insert(*function)).collect()
        });
        ToolScope { program, functions, emulated: None }
    }

    /// Marks proxy instructions; tables show the emulated instructions in their place.
    #[must_use]
    pub fn with_emulated(self, emulated: &'a EmulatedInsts) -> ToolScope<'a> {
        ToolScope { emulated: Some(emulated), ..self }
    }

    fn emulated(&self, at: InstIndex) -> Option<&'a EmulatedInst> {
        self.emulated?.get(&at)
    }

    /// Returns `true` for a proxy instruction.
    pub fn is_emulated(&self, at: InstIndex) -> bool {
        self.emulated(at).is_some()
    }

    /// The disassembly of the code object.
    pub fn program(&self) -> &'a Disassembly {
        self.program
    }

    /// Returns `true` if an instruction is in the scope.
    pub fn contains(&self, at: InstIndex) -> bool {
        self.functions.binary_search(&self.program.function_of(at)).is_ok()
    }

    /// All instructions in the scope, by ascending address.
    pub fn all(&self) -> Vec<InstIndex> {
        let within = self.program.insts().map(|(at, _)| at).filter(|at| self.contains(*at));
        within.collect()
    }

    /// The instructions in the scope that match a predicate, without proxies, by ascending address.
    pub fn select(&self, matches: impl Fn(&Inst) -> bool) -> Vec<InstIndex> {
        let is_candidate = |at| self.contains(at) && self.emulated(at).is_none();
        let within = self.program.insts().filter(|(at, inst)| is_candidate(*at) && matches(inst));
        within.map(|(at, _)| at).collect()
    }

    /// The name of an instruction's operation; of a proxy, that of the emulated instruction.
    pub fn operation(&self, at: InstIndex) -> Option<&'a str> {
        let native = || Some(self.program.inst(at)?.operation.name());
        self.emulated(at).map(|emulated| emulated.operation.as_str()).or_else(native)
    }

    /// The location columns of an instruction; `None` if it is not in the scope.
    pub fn location(&self, at: InstIndex) -> Option<InstLocation> {
        if !self.contains(at) {
            return None;
        }
        let function = self.program.functions[self.program.function_of(at)].name.to_string();
        let inst = &self.program.instructions[at];
        let text = self.emulated(at).map_or(inst.text.trim(), |emulated| &emulated.text);
        let instruction = text.to_owned();
        Some(InstLocation { function, pc: inst.pc, instruction })
    }
}
