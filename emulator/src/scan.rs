//! Where proxies are.

use crate::mark::marks;
use crate::pattern::{Mismatch, Pattern};
use crate::signature::Calling;
use crate::{EmulateError, Instruction, Lanes, Matching, NearMiss};
use flipwave_codeobj::{CodeObject, LineTable};
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_hooks::hook::{HookCompiler, HookSource, Mask};
use flipwave_hooks::rewrite::{HookCall, Instrumentation, Report, When};
use flipwave_isa::{Inst, Isa, Pc, RegisterRange, Value};
use flipwave_tools::{Substitute, Substitutes};
use std::collections::BTreeMap;

/// Where the proxies of some instructions are in a code object.
#[derive(Clone, Debug)]
pub struct Scan<'a> {
    instructions: Vec<Ready<'a>>,
    sites: BTreeMap<InstIndex, usize>,
    nearest: Vec<NearMiss>,
}

/// An instruction that is ready to be called.
#[derive(Clone, Debug)]
struct Ready<'a> {
    instruction: &'a Instruction,
    pattern: Pattern,
    source: HookSource,
    calling: Calling,
}

/// A proxy that was found.
#[derive(Clone, Copy, Debug)]
pub struct Emulated<'a> {
    /// The proxy.
    pub at: InstIndex,
    /// The instruction that it stands for.
    pub instruction: &'a Instruction,
}

impl<'a> Scan<'a> {
    /// Looks for the proxies of `instructions` in a code object, which `program` was read from.
    ///
    /// # Errors
    /// [`EmulateError`] for what is wrong with an instruction itself, for collisions and for marks
    /// that do not fit. That nothing fits is none: see [`Scan::nearest`].
    pub fn new(
        object: &CodeObject,
        program: &Disassembly,
        instructions: &'a [Instruction],
        compiler: &HookCompiler,
    ) -> Result<Scan<'a>, EmulateError> {
        let isa = program.isa()?;
        let mut ready: Vec<Ready<'a>> = Vec::new();
        for instruction in instructions {
            if ready.iter().any(|own| own.instruction.name == instruction.name) {
                return Err(EmulateError::Twice { instruction: instruction.name.clone() });
            }
            ready.push(Ready::new(instruction, &isa, program, compiler)?);
        }
        let marks = marks(object);
        let places = Places { program, lines: object.lines().unwrap_or_default() };
        for (name, marked) in &marks {
            if !ready.iter().any(|own| own.instruction.name == *name)
                && let Some(pc) = marked.first()
            {
                return Err(EmulateError::Undefined {
                    instruction: name.clone(),
                    place: places.pc(*pc),
                    defined: ready.iter().map(|own| own.instruction.name.clone()).collect(),
                });
            }
        }
        let mut scan = Scan { instructions: ready, sites: BTreeMap::new(), nearest: Vec::new() };
        for index in 0..scan.instructions.len() {
            let marked =
                scan.instructions.get(index).and_then(|own| marks.get(&own.instruction.name));
            let is_marked = |pc: Pc| marked.is_some_and(|marked| marked.contains(&pc));
            scan.add(index, &places, &is_marked)?;
        }
        Ok(scan)
    }

    /// Adds the proxies of an instruction.
    fn add(
        &mut self,
        index: usize,
        places: &Places<'_>,
        is_marked: &dyn Fn(Pc) -> bool,
    ) -> Result<(), EmulateError> {
        let Some(own) = self.instructions.get(index) else { return Ok(()) };
        let (name, proxy) = (&own.instruction.name, own.pattern.text());
        let mut nearest: Option<(usize, NearMiss)> = None;
        let mut collisions = Vec::new();
        for (at, inst) in places.program.executable_insts() {
            let is_marked = is_marked(inst.pc);
            match own.pattern.fit(inst) {
                Ok(()) if is_marked || own.instruction.matching == Matching::All => {
                    if let Some(other) = self.sites.insert(at, index) {
                        let other = self.instructions.get(other);
                        return Err(EmulateError::Ambiguous {
                            place: places.inst(inst),
                            one: other.map_or_else(String::new, |own| own.instruction.name.clone()),
                            other: name.clone(),
                        });
                    }
                }
                Ok(()) => collisions.push(places.inst(inst)),
                Err(mismatch) if is_marked => {
                    return Err(EmulateError::Mark {
                        instruction: name.clone(),
                        proxy: proxy.to_owned(),
                        place: places.inst(inst),
                        reason: mismatch.map_or_else(
                            || "it is another operation".to_owned(),
                            |mismatch| mismatch.reason,
                        ),
                    });
                }
                Err(Some(Mismatch { fitting, reason })) => {
                    if nearest.as_ref().is_none_or(|(best, _)| fitting > *best) {
                        nearest = Some((fitting, places.near(inst, reason)));
                    }
                }
                Err(None) => {}
            }
        }
        if !collisions.is_empty() {
            let (instruction, proxy) = (name.clone(), proxy.to_owned());
            return Err(EmulateError::Collision { instruction, proxy, places: collisions });
        }
        self.nearest.push(nearest.map_or(NearMiss::NoOperation, |(_, nearest)| nearest));
        Ok(())
    }

    /// The proxies that were found, by ascending address.
    pub fn emulated(&self) -> impl Iterator<Item = Emulated<'a>> {
        self.sites.iter().filter_map(|(at, index)| {
            let own = self.instructions.get(*index)?;
            Some(Emulated { at: *at, instruction: own.instruction })
        })
    }

    /// What comes nearest to an instruction's proxy, of those that do not fit.
    pub fn nearest(&self, instruction: &str) -> Option<&NearMiss> {
        let at = self.instructions.iter().position(|own| own.instruction.name == instruction)?;
        self.nearest.get(at)
    }

    /// Each proxy as tools show it: the instruction's name and its operands.
    pub fn substitutes(&self, program: &Disassembly) -> Substitutes {
        let substitute = |(at, index): (&InstIndex, &usize)| {
            let own = self.instructions.get(*index)?;
            let inst = program.inst(*at)?;
            let operation = own.instruction.name.clone();
            let text = format!("{operation} {}", own.pattern.operands_of(inst));
            Some((*at, Substitute { operation, text }))
        };
        self.sites.iter().filter_map(substitute).collect()
    }

    /// Asks for each proxy to be replaced, in an instrumentation of the same code object.
    pub fn replace(&self, instrumentation: &mut Instrumentation<'_>) {
        let mut sources = vec![None; self.instructions.len()];
        for (at, index) in &self.sites {
            let Some(own) = self.instructions.get(*index) else { continue };
            let results = instrumentation.program().inst(*at).map(|inst| own.results(inst));
            let source = sources.get_mut(*index).map(|known| {
                *known.get_or_insert_with(|| instrumentation.add_source(own.source.clone()))
            });
            let (Some(source), Some(results)) = (source, results) else { continue };
            let call = HookCall {
                source,
                function: own.instruction.function.clone(),
                arguments: own.calling.arguments.clone(),
                results,
                mask: match own.instruction.lanes {
                    Lanes::Active => Mask::Guest,
                    Lanes::All => Mask::Whole,
                },
            };
            instrumentation.call(*at, When::Instead, call);
        }
    }

    /// The registers that the result of a proxy goes to.
    pub fn results(&self, program: &Disassembly, at: InstIndex) -> Vec<RegisterRange> {
        let own = self.sites.get(&at).and_then(|index| self.instructions.get(*index));
        own.zip(program.inst(at)).map(|(own, inst)| own.results(inst)).unwrap_or_default()
    }

    /// Demands that every proxy was replaced.
    ///
    /// # Errors
    /// [`EmulateError::Refused`].
    pub fn demand(&self, program: &Disassembly, report: &Report) -> Result<(), EmulateError> {
        let mut refused = report.refused.iter().filter(|refused| refused.when == When::Instead);
        let Some(refused) = refused.next() else { return Ok(()) };
        let at = program.at(refused.pc);
        let index = at.and_then(|at| self.sites.get(&at));
        let own = index.and_then(|index| self.instructions.get(*index));
        Err(EmulateError::Refused {
            instruction: own.map_or_else(String::new, |own| own.instruction.name.clone()),
            place: format!("{} `{}`", refused.pc, refused.instruction.trim()),
            reason: refused.reason.clone(),
        })
    }
}

impl<'a> Ready<'a> {
    fn new(
        instruction: &'a Instruction,
        isa: &Isa,
        program: &Disassembly,
        compiler: &HookCompiler,
    ) -> Result<Ready<'a>, EmulateError> {
        let name = || instruction.name.clone();
        let pattern =
            Pattern::new(&instruction.proxy, &instruction.operands, isa).map_err(|reason| {
                EmulateError::Pattern { instruction: name(), reason: Box::new(reason) }
            })?;
        let source =
            compiler.read(&instruction.source, &program.target, program.wave_size).map_err(
                |reason| EmulateError::Hook { instruction: name(), reason: Box::new(reason) },
            )?;
        let calling = Calling::new(instruction, &pattern, &source)?;
        Ok(Ready { instruction, pattern, source, calling })
    }

    /// The registers that the result goes to.
    fn results(&self, inst: &Inst) -> Vec<RegisterRange> {
        let operands = self.calling.results.iter().filter_map(|index| inst.operands.get(*index));
        let registers = operands.filter_map(|operand| match operand.value {
            Value::Register(range) => Some(range),
            _ => None,
        });
        registers.collect()
    }
}

/// Names places of a program.
struct Places<'a> {
    program: &'a Disassembly,
    lines: LineTable,
}

impl Places<'_> {
    /// An instruction with its place.
    fn inst(&self, inst: &Inst) -> String {
        format!("`{}` at {}", inst.text.trim(), self.pc(inst.pc))
    }

    /// An address with its function and line.
    fn pc(&self, pc: Pc) -> String {
        let function = self.function(pc).map(|name| format!(" in `{name}`")).unwrap_or_default();
        let line = self.lines.lookup(pc);
        let line = line.map(|line| format!(" ({}:{})", line.file, line.line)).unwrap_or_default();
        format!("{pc}{function}{line}")
    }

    fn function(&self, pc: Pc) -> Option<String> {
        let function = self.program.function_of(self.program.at(pc)?);
        Some(self.program.functions[function].name.to_string())
    }

    fn near(&self, inst: &Inst, reason: String) -> NearMiss {
        NearMiss::Inst {
            pc: inst.pc,
            function: self.function(inst.pc).unwrap_or_default(),
            text: inst.text.trim().to_owned(),
            reason,
        }
    }
}
