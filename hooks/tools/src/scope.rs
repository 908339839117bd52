//! The code that a tool instruments, and its requests for hooks.

use super::{EmulatedInst, EmulatedInsts, InstLocation, NotCounted, Options, ToolError};
use flipwave_codeobj::CodeObject;
use flipwave_device::matching_kernels;
use flipwave_hooks::flow::{Disassembly, FunctionIndex, InstIndex};
use flipwave_hooks::hook::{Argument, HookCompiler, Mask, VariableError, Variables, library};
use flipwave_hooks::rewrite::{HookCall, Instrumentation, SourceIndex, When};
use flipwave_isa::Inst;
use std::collections::BTreeSet;

/// The functions of a code object that a tool instruments.
#[derive(Clone, Debug)]
pub struct ToolScope<'a> {
    program: &'a Disassembly,
    functions: Vec<FunctionIndex>,
    emulated: Option<&'a EmulatedInsts>,
    not_counted: Option<&'a NotCounted>,
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
        ToolScope { program, functions, emulated: None, not_counted: None }
    }

    /// Marks proxy instructions; tables show the emulated instructions in their place.
    #[must_use]
    pub fn with_emulated(self, emulated: &'a EmulatedInsts) -> ToolScope<'a> {
        ToolScope { emulated: Some(emulated), ..self }
    }

    /// Marks the instructions that could not be counted.
    #[must_use]
    pub fn without(self, not_counted: &'a NotCounted) -> ToolScope<'a> {
        ToolScope { not_counted: Some(not_counted), ..self }
    }

    /// The instructions in the scope that could not be counted, by ascending address.
    pub fn not_counted(&self) -> impl Iterator<Item = InstIndex> + '_ {
        let all = self.not_counted.into_iter().flat_map(NotCounted::iter);
        all.filter(|at| self.contains(*at))
    }

    fn emulated(&self, at: InstIndex) -> Option<&'a EmulatedInst> {
        self.emulated?.get(&at)
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

    /// The location columns of a counted instruction; `None` if it is not in the scope or not counted.
    pub fn location(&self, at: InstIndex) -> Option<InstLocation> {
        let is_counted = self.not_counted.is_none_or(|not_counted| !not_counted.contains(at));
        self.any_location(at).filter(|_| is_counted)
    }

    /// The location columns of an instruction, counted or not; `None` if it is not in the scope.
    pub(super) fn any_location(&self, at: InstIndex) -> Option<InstLocation> {
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

/// A tool's requests for hooks in one code object.
pub struct ToolRequests<'i, 'o> {
    instrumentation: &'i mut Instrumentation<'o>,
    compiler: &'i HookCompiler,
    options: &'i Options,
    scope: ToolScope<'i>,
}

impl<'i, 'o> ToolRequests<'i, 'o> {
    /// Collects requests for hooks in the code of `scope`, which belongs to the same code object.
    pub fn new(
        instrumentation: &'i mut Instrumentation<'o>,
        compiler: &'i HookCompiler,
        options: &'i Options,
        scope: ToolScope<'i>,
    ) -> ToolRequests<'i, 'o> {
        ToolRequests { instrumentation, compiler, options, scope }
    }

    /// The options of the tool.
    pub fn options(&self) -> &Options {
        self.options
    }

    /// The code to instrument.
    pub fn scope(&self) -> &ToolScope<'i> {
        &self.scope
    }

    /// Adds a source of the hook library, compiled with the given values of its macros.
    ///
    /// # Errors
    /// [`ToolError::NoHooks`] if the library has no source with this name; [`ToolError::Hook`] if it does
    /// not compile.
    pub fn source(&mut self, name: &str, macros: &[(&str, u64)]) -> Result<SourceIndex, ToolError> {
        let source = library::source(name, macros)
            .ok_or_else(|| ToolError::NoHooks { wanted: name.to_owned() })?;
        let program = self.scope.program();
        let read = self.compiler.read(&source, &program.target, program.wave_size)?;
        Ok(self.instrumentation.add_source(read))
    }

    /// Requests a call of `function` before the instruction at `at`.
    pub fn call_before(
        &mut self,
        at: InstIndex,
        source: SourceIndex,
        function: &str,
        mask: Mask,
        arguments: Vec<Argument>,
    ) {
        let call =
            HookCall { source, function: function.to_owned(), arguments, results: vec![], mask };
        self.instrumentation.call(at, When::Before, call);
    }
}

/// The length of a counter array for a number of sites: a power of two, so that a compiled hook source can
/// be reused for many code objects, and at least 1.
pub(super) fn counter_array_length(sites: usize) -> u64 {
    sites.next_power_of_two() as u64
}

/// Reads the variable `name`, an array of 64-bit numbers, of the first source.
pub(super) fn counters(variables: &[Variables<'_>], name: &str) -> Result<Vec<u64>, ToolError> {
    Ok(first_source(variables, name)?.numbers(name)?)
}

/// The variables of the first source, which has a variable `name`.
pub(super) fn first_source<'v, 'a>(
    variables: &'v [Variables<'a>],
    name: &str,
) -> Result<&'v Variables<'a>, ToolError> {
    variables.first().ok_or_else(|| {
        let (wanted, present) = (name.to_owned(), Vec::new());
        ToolError::Variable(VariableError::Unknown { wanted, present })
    })
}

/// The hook argument with the address of a variable, plus an offset in bytes.
pub(super) fn variable_address(symbol: &str, offset: usize) -> Argument {
    Argument::Data { symbol: symbol.to_owned(), offset: offset as u64 }
}

/// The hook arguments that identify the current wave.
pub(super) fn wave_position() -> [Argument; 4] {
    [
        Argument::WorkgroupId(0),
        Argument::WorkgroupId(1),
        Argument::WorkgroupId(2),
        Argument::WaveInWorkgroup,
    ]
}
