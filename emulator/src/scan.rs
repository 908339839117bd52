//! Finds proxies in code objects.

use crate::mark::marks;
use crate::pattern::{Mismatch, Pattern};
use crate::signature::OperandBinding;
use crate::{ClosestMatch, EmulateError, Instruction, Lanes, Matching};
use flipwave_codeobj::{CodeObject, LineTable};
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_hooks::hook::{HookCompiler, HookSource, Mask};
use flipwave_hooks::rewrite::{HookCall, Instrumentation, Report, When};
use flipwave_isa::{Inst, Isa, Pc, RegisterRange, Value};
use flipwave_tools::{EmulatedInst, EmulatedInsts};
use std::collections::BTreeMap;

/// The proxies of emulated instructions in a code object.
#[derive(Clone, Debug)]
pub struct Scan<'a> {
    instructions: Vec<Compiled<'a>>,
    /// The proxies, with indices into `instructions`.
    sites: BTreeMap<InstIndex, usize>,
    /// The closest match of each instruction, in the order of `instructions`.
    closest: Vec<ClosestMatch>,
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
        let mut compiled: Vec<Compiled<'a>> = Vec::new();
        for instruction in instructions {
            if compiled.iter().any(|earlier| earlier.instruction.name == instruction.name) {
                return Err(EmulateError::Duplicate { instruction: instruction.name.clone() });
            }
            compiled.push(Compiled::new(instruction, &isa, program, compiler)?);
        }
        let marks = marks(object);
        let locations = Locations { program, lines: object.lines().unwrap_or_default() };
        for (name, marked) in &marks {
            let mut defined = compiled.iter().map(|compiled| &compiled.instruction.name);
            if !defined.any(|defined| defined == name)
                && let Some(pc) = marked.first()
            {
                let defined = compiled.iter().map(|compiled| compiled.instruction.name.clone());
                return Err(EmulateError::Undefined {
                    instruction: name.clone(),
                    location: locations.pc(*pc),
                    defined: defined.collect(),
                });
            }
        }
        let mut scan = Scan { instructions: compiled, sites: BTreeMap::new(), closest: Vec::new() };
        for index in 0..scan.instructions.len() {
            let name = scan.instructions.get(index).map(|compiled| &compiled.instruction.name);
            let marked = name.and_then(|name| marks.get(name));
            let is_marked = |pc: Pc| marked.is_some_and(|marked| marked.contains(&pc));
            scan.add(index, &locations, &is_marked)?;
        }
        Ok(scan)
    }

    /// Adds the proxies of an instruction.
    fn add(
        &mut self,
        index: usize,
        locations: &Locations<'_>,
        is_marked: &dyn Fn(Pc) -> bool,
    ) -> Result<(), EmulateError> {
        let Some(compiled) = self.instructions.get(index) else { return Ok(()) };
        let (name, proxy) = (&compiled.instruction.name, compiled.pattern.text());
        let mut closest: Option<(usize, ClosestMatch)> = None;
        let mut collisions = Vec::new();
        for (at, inst) in locations.program.executable_insts() {
            let is_marked = is_marked(inst.pc);
            match compiled.pattern.match_inst(inst) {
                Ok(()) if is_marked || compiled.instruction.matching == Matching::All => {
                    if let Some(first) = self.sites.insert(at, index) {
                        let first = self.instructions.get(first);
                        let first = first.map(|compiled| compiled.instruction.name.clone());
                        return Err(EmulateError::Ambiguous {
                            location: locations.inst(inst),
                            first: first.unwrap_or_default(),
                            second: name.clone(),
                        });
                    }
                }
                Ok(()) => collisions.push(locations.inst(inst)),
                Err(mismatch) if is_marked => {
                    return Err(EmulateError::MarkMismatch {
                        instruction: name.clone(),
                        proxy: proxy.to_owned(),
                        location: locations.inst(inst),
                        reason: mismatch.map_or_else(
                            || "different operation".to_owned(),
                            |mismatch| mismatch.reason,
                        ),
                    });
                }
                Err(Some(Mismatch { matching_parts, reason })) => {
                    if closest.as_ref().is_none_or(|(most, _)| matching_parts > *most) {
                        closest = Some((matching_parts, locations.closest_match(inst, reason)));
                    }
                }
                Err(None) => {}
            }
        }
        if !collisions.is_empty() {
            let (instruction, proxy) = (name.clone(), proxy.to_owned());
            return Err(EmulateError::Collision { instruction, proxy, locations: collisions });
        }
        self.closest.push(closest.map_or(ClosestMatch::NoOperation, |(_, closest)| closest));
        Ok(())
    }

    /// The proxies, by ascending address.
    pub fn proxies(&self) -> impl Iterator<Item = Proxy<'a>> {
        self.sites.iter().filter_map(|(at, index)| {
            let compiled = self.instructions.get(*index)?;
            Some(Proxy { at: *at, instruction: compiled.instruction })
        })
    }

    /// The instruction that comes closest to the proxy of `instruction` without matching it.
    pub fn closest_match(&self, instruction: &str) -> Option<&ClosestMatch> {
        let mut names = self.instructions.iter().map(|compiled| &compiled.instruction.name);
        let index = names.position(|name| name == instruction)?;
        self.closest.get(index)
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
        self.sites.iter().filter_map(emulated).collect()
    }

    /// Requests the replacement of each proxy by a call of the hook, in an instrumentation of the same code
    /// object.
    pub fn replace(&self, instrumentation: &mut Instrumentation<'_>) {
        let mut sources = vec![None; self.instructions.len()];
        for (at, index) in &self.sites {
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
        let compiled = self.sites.get(&at).and_then(|index| self.instructions.get(*index));
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
        let index = at.and_then(|at| self.sites.get(&at));
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
struct Locations<'a> {
    program: &'a Disassembly,
    lines: LineTable,
}

impl Locations<'_> {
    /// Formats an instruction with its location.
    fn inst(&self, inst: &Inst) -> String {
        format!("`{}` at {}", inst.text.trim(), self.pc(inst.pc))
    }

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

    fn closest_match(&self, inst: &Inst, reason: String) -> ClosestMatch {
        ClosestMatch::Inst {
            pc: inst.pc,
            function: self.function(inst.pc).unwrap_or_default(),
            text: inst.text.trim().to_owned(),
            reason,
        }
    }
}
