//! Which code a tool looks at, and how it asks for hooks there.

use super::{InstPlace, NotCounted, Options, Substitute, Substitutes, ToolError};
use flipwave_codeobj::CodeObject;
use flipwave_hooks::flow::{Disassembly, FunctionIndex, InstIndex};
use flipwave_hooks::hook::{Argument, HookCompiler, Mask, VariableError, Variables, library};
use flipwave_hooks::rewrite::{HookCall, Instrumentation, SourceIndex, When};
use flipwave_isa::Inst;

/// Functions of a code object: those that run in some kernels.
#[derive(Clone, Debug)]
pub struct ToolScope<'a> {
    program: &'a Disassembly,
    functions: Vec<FunctionIndex>,
    substitutes: Option<&'a Substitutes>,
    not_counted: Option<&'a NotCounted>,
}

impl<'a> ToolScope<'a> {
    /// What may run in a kernel, or, of no kernel, in any. Of a kernel that the code object
    /// does not have: nothing.
    pub fn new(
        object: &CodeObject,
        program: &'a Disassembly,
        kernel: Option<&str>,
    ) -> ToolScope<'a> {
        let all = || program.executable().into_iter().collect();
        let functions = kernel.map_or_else(all, |name| {
            let index = object.kernels().iter().position(|kernel| *kernel.name == *name);
            let function = index.and_then(|index| program.kernel(index));
            function.map(|function| program.reachable(function)).unwrap_or_default()
        });
        ToolScope { program, functions, substitutes: None, not_counted: None }
    }

    /// The same code, in which some instructions stand for others.
    #[must_use]
    pub fn with(self, substitutes: &'a Substitutes) -> ToolScope<'a> {
        ToolScope { substitutes: Some(substitutes), ..self }
    }

    /// The same code, of which some instructions were not counted.
    #[must_use]
    pub fn without(self, not_counted: &'a NotCounted) -> ToolScope<'a> {
        ToolScope { not_counted: Some(not_counted), ..self }
    }

    /// Its instructions that were not counted, by ascending address.
    pub fn not_counted(&self) -> impl Iterator<Item = InstIndex> + '_ {
        let all = self.not_counted.into_iter().flat_map(NotCounted::iter);
        all.filter(|at| self.contains(*at))
    }

    fn substitute(&self, at: InstIndex) -> Option<&'a Substitute> {
        self.substitutes?.get(&at)
    }

    /// The code.
    pub fn program(&self) -> &'a Disassembly {
        self.program
    }

    /// Whether an instruction is in it.
    pub fn contains(&self, at: InstIndex) -> bool {
        self.functions.binary_search(&self.program.function_of(at)).is_ok()
    }

    /// All its instructions, by ascending address.
    pub fn all(&self) -> Vec<InstIndex> {
        let within = self.program.insts().map(|(at, _)| at).filter(|at| self.contains(*at));
        within.collect()
    }

    /// Its instructions that fit and stand for no others, by ascending address.
    pub fn select(&self, fits: impl Fn(&Inst) -> bool) -> Vec<InstIndex> {
        let is_itself = |at| self.contains(at) && self.substitute(at).is_none();
        let within = self.program.insts().filter(|(at, inst)| is_itself(*at) && fits(inst));
        within.map(|(at, _)| at).collect()
    }

    /// The operation of an instruction.
    pub fn operation(&self, at: InstIndex) -> Option<&'a str> {
        let own = || Some(self.program.inst(at)?.operation.name());
        self.substitute(at).map(|own| own.operation.as_str()).or_else(own)
    }

    /// A counted instruction as rows name it; nothing where it is not in the scope.
    pub fn place(&self, at: InstIndex) -> Option<InstPlace> {
        let is_counted = self.not_counted.is_none_or(|own| !own.contains(at));
        self.named(at).filter(|_| is_counted)
    }

    /// An instruction as rows name it, counted or not.
    pub(super) fn named(&self, at: InstIndex) -> Option<InstPlace> {
        if !self.contains(at) {
            return None;
        }
        let function = self.program.functions[self.program.function_of(at)].name.to_string();
        let inst = &self.program.instructions[at];
        let text = self.substitute(at).map_or(inst.text.trim(), |own| &own.text);
        let instruction = text.to_owned();
        Some(InstPlace { function, pc: inst.pc, instruction })
    }
}

/// A code object that a tool asks for hooks in.
pub struct ToolRequests<'i, 'o> {
    instrumentation: &'i mut Instrumentation<'o>,
    compiler: &'i HookCompiler,
    options: &'i Options,
    scope: ToolScope<'i>,
}

impl<'i, 'o> ToolRequests<'i, 'o> {
    /// Asks for hooks in the code of `scope`, which is of the same code object.
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

    /// The code to be looked at.
    pub fn scope(&self) -> &ToolScope<'i> {
        &self.scope
    }

    /// Adds hooks of the library, compiled with these numbers for their macros.
    ///
    /// # Errors
    /// [`ToolError::NoHooks`] where it has none of the name; [`ToolError::Hook`] where they do not
    /// compile.
    pub fn source(&mut self, name: &str, macros: &[(&str, u64)]) -> Result<SourceIndex, ToolError> {
        let source = library::source(name, macros)
            .ok_or_else(|| ToolError::NoHooks { wanted: name.to_owned() })?;
        let program = self.scope.program();
        let read = self.compiler.read(&source, &program.target, program.wave_size)?;
        Ok(self.instrumentation.add_source(read))
    }

    /// Asks for a hook.
    pub fn call(
        &mut self,
        (at, when): (InstIndex, When),
        (source, function): (SourceIndex, &str),
        mask: Mask,
        arguments: Vec<Argument>,
    ) {
        let call =
            HookCall { source, function: function.to_owned(), arguments, results: vec![], mask };
        self.instrumentation.call(at, when, call);
    }
}

/// Elements of an array for a number of sites: never none, and a power of two, so that hooks that were
/// compiled serve many code objects.
pub(super) fn room(sites: usize) -> u64 {
    sites.next_power_of_two() as u64
}

/// A variable of 64-bit numbers of the first source.
pub(super) fn of(variables: &[Variables<'_>], name: &str) -> Result<Vec<u64>, ToolError> {
    Ok(first(variables, name)?.numbers(name)?)
}

/// The first source's variables, of which `name` is wanted.
pub(super) fn first<'v, 'a>(
    variables: &'v [Variables<'a>],
    name: &str,
) -> Result<&'v Variables<'a>, ToolError> {
    variables.first().ok_or_else(|| {
        let (wanted, present) = (name.to_owned(), Vec::new());
        ToolError::Variable(VariableError::Unknown { wanted, present })
    })
}

/// A variable's byte.
pub(super) fn data(symbol: &str, offset: usize) -> Argument {
    Argument::Data { symbol: symbol.to_owned(), offset: offset as u64 }
}

/// The wave that runs, as four numbers.
pub(super) fn wave() -> [Argument; 4] {
    [
        Argument::WorkgroupId(0),
        Argument::WorkgroupId(1),
        Argument::WorkgroupId(2),
        Argument::WaveInWorkgroup,
    ]
}
