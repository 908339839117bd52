//! Finds proxies in code objects.

use crate::mark::marks;
use crate::pattern::Pattern;
use crate::signature::OperandBinding;
use crate::sites::{Candidate, Locations, Sites, check_mark, check_names};
use crate::{ClosestMatch, EmulateError, Instruction, Lanes};
use flipwave_codeobj::{CodeObject, LineTable};
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_hooks::hook::{HookCompiler, HookSource, Mask};
use flipwave_hooks::rewrite::{HookCall, Instrumentation, Report, When};
use flipwave_isa::{Inst, Isa, Pc, RegisterRange, Value};
use flipwave_tools::{EmulatedInst, EmulatedInsts};

/// The proxies of emulated instructions in a code object.
#[derive(Clone, Debug)]
pub struct Scan<'a> {
    instructions: Vec<Compiled<'a>>,
    /// The proxies, with indices into `instructions`.
    sites: Sites<InstIndex>,
}

/// An emulated instruction with its assembled pattern and its compiled hook.
#[derive(Clone, Debug)]
struct Compiled<'a> {
    instruction: &'a Instruction,
    pattern: Pattern,
    source: HookSource,
    operands: OperandBinding,
}

/// A proxy in a code object.
#[derive(Clone, Copy, Debug)]
pub struct Proxy<'a> {
    /// The instruction in the code object.
    pub at: InstIndex,
    /// The emulated instruction.
    pub instruction: &'a Instruction,
}

impl<'a> Scan<'a> {
    /// Finds the proxies of `instructions` in a code object, whose disassembly is `program`.
    ///
    /// # Errors
    /// [`EmulateError`] for invalid instructions, collisions, and marks that do not match. Instructions
    /// without proxies are not an error, see [`Scan::closest_match`].
    pub fn new(
        object: &CodeObject,
        program: &Disassembly,
        instructions: &'a [Instruction],
        compiler: &HookCompiler,
    ) -> Result<Scan<'a>, EmulateError> {
        let isa = program.isa()?;
        check_names(instructions)?;
        let compiled = instructions
            .iter()
            .map(|instruction| Compiled::new(instruction, &isa, program, compiler))
            .collect::<Result<Vec<_>, _>>()?;
        let marks = marks(object);
        let locations = CodeLocations { program, lines: object.lines().unwrap_or_default() };
        for (name, marked) in &marks {
            if let Some(pc) = marked.first() {
                check_mark(name, instructions, || locations.pc(*pc))?;
            }
        }
        let all: Vec<&Instruction> = instructions.iter().collect();
        let mut sites = Sites::default();
        for (index, compiled) in compiled.iter().enumerate() {
            let marked = marks.get(&compiled.instruction.name);
            let candidates = program.executable_insts().map(|(at, inst)| Candidate {
                at,
                is_marked: marked.is_some_and(|marked| marked.contains(&inst.pc)),
                result: compiled.pattern.match_inst(inst),
            });
            sites.add(index, &all, candidates, &locations)?;
        }
        Ok(Scan { instructions: compiled, sites })
    }

    /// The proxies, by ascending address.
    pub fn proxies(&self) -> impl Iterator<Item = Proxy<'a>> {
        self.sites.proxies.iter().filter_map(|(at, index)| {
            let compiled = self.instructions.get(*index)?;
            Some(Proxy { at: *at, instruction: compiled.instruction })
        })
    }

    /// The instruction that comes closest to the proxy of `instruction` without matching it.
    pub fn closest_match(&self, instruction: &str) -> Option<&ClosestMatch> {
        let mut names = self.instructions.iter().map(|compiled| &compiled.instruction.name);
        let index = names.position(|name| name == instruction)?;
        self.sites.closest.get(index)
    }

    /// The emulated instructions with the operands of their proxies, as tools show them.
    pub fn emulated_insts(&self, program: &Disassembly) -> EmulatedInsts {
        let emulated = |(at, index): (&InstIndex, &usize)| {
            let compiled = self.instructions.get(*index)?;
            let inst = program.inst(*at)?;
            let operation = compiled.instruction.name.clone();
            let text = format!("{operation} {}", compiled.pattern.operands_of(inst));
            Some((*at, EmulatedInst { operation, text }))
        };
        self.sites.proxies.iter().filter_map(emulated).collect()
    }

    /// Requests the replacement of each proxy by a call of the hook, in an instrumentation of the same code
    /// object.
    pub fn replace(&self, instrumentation: &mut Instrumentation<'_>) {
        let mut sources = vec![None; self.instructions.len()];
        for (at, index) in &self.sites.proxies {
            let Some(compiled) = self.instructions.get(*index) else { continue };
            let results = instrumentation.program().inst(*at).map(|inst| compiled.results(inst));
            let source = sources.get_mut(*index).map(|known| {
                *known.get_or_insert_with(|| instrumentation.add_source(compiled.source.clone()))
            });
            let (Some(source), Some(results)) = (source, results) else { continue };
            let call = HookCall {
                source,
                function: compiled.instruction.function.clone(),
                arguments: compiled.operands.arguments.clone(),
                results,
                mask: match compiled.instruction.lanes {
                    Lanes::Active => Mask::Guest,
                    Lanes::All => Mask::Whole,
                },
            };
            instrumentation.call(*at, When::Instead, call);
        }
    }

    /// The registers that the emulated instruction at a proxy writes.
    pub fn results(&self, program: &Disassembly, at: InstIndex) -> Vec<RegisterRange> {
        let compiled = self.sites.proxies.get(&at).and_then(|index| self.instructions.get(*index));
        let with_inst = compiled.zip(program.inst(at));
        with_inst.map(|(compiled, inst)| compiled.results(inst)).unwrap_or_default()
    }

    /// Checks in the engine's report that every proxy was replaced.
    ///
    /// # Errors
    /// [`EmulateError::Refused`].
    pub fn check_replaced(
        &self,
        program: &Disassembly,
        report: &Report,
    ) -> Result<(), EmulateError> {
        let mut refused = report.refused.iter().filter(|refused| refused.when == When::Instead);
        let Some(refused) = refused.next() else { return Ok(()) };
        let at = program.at(refused.pc);
        let index = at.and_then(|at| self.sites.proxies.get(&at));
        let compiled = index.and_then(|index| self.instructions.get(*index));
        let name = compiled.map(|compiled| compiled.instruction.name.clone());
        Err(EmulateError::Refused {
            instruction: name.unwrap_or_default(),
            location: format!("{} `{}`", refused.pc, refused.instruction.trim()),
            reason: refused.reason.clone(),
        })
    }
}

impl<'a> Compiled<'a> {
    /// Assembles the pattern and compiles the hook of an instruction.
    fn new(
        instruction: &'a Instruction,
        isa: &Isa,
        program: &Disassembly,
        compiler: &HookCompiler,
    ) -> Result<Compiled<'a>, EmulateError> {
        let name = || instruction.name.clone();
        let pattern =
            Pattern::new(&instruction.proxy, &instruction.operands, isa).map_err(|reason| {
                EmulateError::Pattern { instruction: name(), reason: Box::new(reason) }
            })?;
        let source =
            compiler.read(&instruction.source, &program.target, program.wave_size).map_err(
                |reason| EmulateError::Hook { instruction: name(), reason: Box::new(reason) },
            )?;
        let operands = OperandBinding::new(instruction, &pattern, &source)?;
        Ok(Compiled { instruction, pattern, source, operands })
    }

    /// The destination registers of a proxy.
    fn results(&self, inst: &Inst) -> Vec<RegisterRange> {
        let operands = self.operands.results.iter().filter_map(|index| inst.operands.get(*index));
        let registers = operands.filter_map(|operand| match operand.value {
            Value::Register(range) => Some(range),
            _ => None,
        });
        registers.collect()
    }
}

/// Formats locations in a program for messages.
struct CodeLocations<'a> {
    program: &'a Disassembly,
    lines: LineTable,
}

impl CodeLocations<'_> {
    /// Formats an address with its function and source line.
    fn pc(&self, pc: Pc) -> String {
        let function = self.function(pc).map(|name| format!(" in `{name}`")).unwrap_or_default();
        let line = self.lines.lookup(pc);
        let line = line.map(|line| format!(" ({line})")).unwrap_or_default();
        format!("{pc}{function}{line}")
    }

    fn function(&self, pc: Pc) -> Option<String> {
        let function = self.program.function_of(self.program.at(pc)?);
        Some(self.program.functions[function].name.to_string())
    }
}

impl Locations<InstIndex> for CodeLocations<'_> {
    fn describe(&self, at: InstIndex) -> String {
        let inst = self.program.inst(at);
        inst.map(|inst| format!("`{}` at {}", inst.text.trim(), self.pc(inst.pc)))
            .unwrap_or_default()
    }

    fn closest_match(&self, at: InstIndex, reason: String) -> ClosestMatch {
        let Some(inst) = self.program.inst(at) else { return ClosestMatch::NoOperation };
        ClosestMatch::Inst {
            pc: inst.pc,
            function: self.function(inst.pc).unwrap_or_default(),
            text: inst.text.trim().to_owned(),
            reason,
        }
    }
}
