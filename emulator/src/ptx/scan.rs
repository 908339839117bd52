//! Finds proxies in PTX modules.

use super::mark::marks;
use super::pattern::{NamedOperand, OperandValue, PtxPattern};
use super::wrapper::{Passed, WRAPPER, source, text};
use crate::sites::{Candidate, Locations, Sites, check_mark, check_names};
use crate::{ClosestMatch, EmulateError, Instruction, Lanes};
use flipwave_arch::{RegisterId, SourceLines};
use flipwave_hooks::hook::Signature;
use flipwave_ptx::{Code, EmulatedInst, Module, Ptx, Register};
use flipwave_ptx_hooks::{
    Argument, HookCall, HookLibrary, Instrumentation, Lanes as HookLanes, Place, PtxHookCompiler,
    PtxHookError,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The proxies of emulated instructions in a module.
#[derive(Clone, Debug)]
pub struct PtxScan<'a> {
    instructions: Vec<Compiled<'a>>,
    /// The proxies by number of the instruction, with indices into `instructions`.
    sites: Sites<usize>,
    /// Values of the named operands by number of the instruction.
    operands: BTreeMap<usize, Vec<OperandValue>>,
}

/// An emulated instruction with its pattern and its compiled hook.
#[derive(Clone, Debug)]
struct Compiled<'a> {
    instruction: &'a Instruction,
    pattern: PtxPattern,
    library: Arc<HookLibrary>,
    /// Indices of the operands that the wrapper receives, in order.
    arguments: Vec<usize>,
}

/// A proxy in a module.
#[derive(Clone, Copy, Debug)]
pub struct PtxProxy<'a> {
    /// Number of the instruction in the code.
    pub number: usize,
    /// The emulated instruction.
    pub instruction: &'a Instruction,
}

impl<'a> PtxScan<'a> {
    /// Finds the proxies of `instructions` in a module for `target`, whose code is `code`.
    ///
    /// # Errors
    /// [`EmulateError`] for invalid instructions, collisions, and marks that do not match. Instructions without
    /// proxies are not an error, see [`PtxScan::closest_match`].
    pub fn new(
        module: &Module,
        code: &Code,
        target: &Ptx,
        instructions: &'a [Instruction],
        compiler: &PtxHookCompiler,
    ) -> Result<PtxScan<'a>, EmulateError> {
        check_names(instructions)?;
        let compiled = instructions
            .iter()
            .map(|instruction| Compiled::new(instruction, target, compiler))
            .collect::<Result<Vec<_>, _>>()?;
        let marks = marks(module);
        let locations = CodeLocations { code };
        for (number, name) in &marks {
            check_mark(name, instructions, || locations.describe(*number))?;
        }
        let all: Vec<&Instruction> = instructions.iter().collect();
        let mut sites = Sites::default();
        let mut operands = BTreeMap::new();
        for (index, compiled) in compiled.iter().enumerate() {
            let candidates = code.instructions.iter().enumerate().map(|(at, inst)| Candidate {
                at,
                is_marked: marks.get(&at) == Some(&compiled.instruction.name),
                result: compiled.pattern.match_inst(inst).map(|values| {
                    operands.insert(at, values);
                }),
            });
            let candidates: Vec<_> = candidates.collect();
            sites.add(index, &all, candidates.into_iter(), &locations)?;
        }
        operands.retain(|at, _| sites.proxies.contains_key(at));
        Ok(PtxScan { instructions: compiled, sites, operands })
    }

    /// The proxies, by ascending number.
    pub fn proxies(&self) -> impl Iterator<Item = PtxProxy<'a>> {
        self.sites.proxies.iter().filter_map(|(number, index)| {
            let instruction = self.instructions.get(*index)?.instruction;
            Some(PtxProxy { number: *number, instruction })
        })
    }

    /// The instruction that comes closest to the proxy of `instruction` without matching it.
    pub fn closest_match(&self, instruction: &str) -> Option<&ClosestMatch> {
        let mut names = self.instructions.iter().map(|compiled| &compiled.instruction.name);
        let index = names.position(|name| name == instruction)?;
        self.sites.closest.get(index)
    }

    /// The emulated instructions as observers see them, by number of the proxy. `code` is the code of the module.
    pub fn emulated_insts(&self, code: &Code) -> BTreeMap<usize, EmulatedInst> {
        let emulated = |(number, index): (&usize, &usize)| {
            let compiled = self.instructions.get(*index)?;
            let values = self.operands.get(number)?;
            let inst = code.instructions.get(*number)?;
            let function = code.functions.get(inst.function)?;
            let operation = compiled.instruction.name.clone();
            let shown = values.iter().map(|value| match value {
                OperandValue::Register(register) => function
                    .register_name(register.first)
                    .map_or_else(|| register.first.to_string(), |(name, _)| name.to_owned()),
                OperandValue::Number(number) => format!("{number:#x}"),
            });
            let shown = shown.collect::<Vec<_>>().join(", ");
            let of_role = |wanted: fn(&NamedOperand) -> bool| {
                let operands = compiled.pattern.operands.iter().zip(values);
                let registers = operands.filter(|(named, _)| wanted(named));
                let registers = registers.filter_map(|(_, value)| register_of(value));
                registers.flat_map(Register::iter).collect::<Vec<RegisterId>>()
            };
            let inst = EmulatedInst {
                text: format!("{operation} {shown}"),
                operation,
                destinations: of_role(|named| named.is_written),
                sources: of_role(|named| named.is_read),
            };
            Some((*number, inst))
        };
        self.sites.proxies.iter().filter_map(emulated).collect()
    }

    /// Requests the replacement of each proxy by a call of the hook, in an instrumentation of the same module.
    ///
    /// # Errors
    /// [`EmulateError::Refused`].
    pub fn replace(&self, instrumentation: &mut Instrumentation) -> Result<(), EmulateError> {
        let mut libraries = BTreeMap::new();
        for (number, index) in &self.sites.proxies {
            let Some(compiled) = self.instructions.get(*index) else { continue };
            let Some(values) = self.operands.get(number) else { continue };
            let library = *libraries
                .entry(index)
                .or_insert_with(|| instrumentation.add_library(compiled.library.clone()));
            let call = HookCall {
                library,
                function: WRAPPER.to_owned(),
                arguments: compiled.arguments(values),
                results: compiled.results(values),
                lanes: match compiled.instruction.lanes {
                    Lanes::Active => HookLanes::Executing,
                    Lanes::All => HookLanes::Reaching,
                },
            };
            instrumentation.emulate(*number, call).map_err(|error| {
                let location = instrumentation
                    .site(*number)
                    .map(|site| format!("{} `{}`", site.inst.pc, site.inst.text()));
                EmulateError::Refused {
                    instruction: compiled.instruction.name.clone(),
                    location: location.unwrap_or_default(),
                    reason: error.to_string(),
                }
            })?;
        }
        Ok(())
    }
}

/// The register of an operand; `None` for numbers.
fn register_of(value: &OperandValue) -> Option<Register> {
    match value {
        OperandValue::Register(register) => Some(*register),
        OperandValue::Number(_) => None,
    }
}

/// The words of a register of 128 bits, which a hook's wrapper receives and returns in two parts; `None` for others.
fn quarters(register: Register) -> Option<[RegisterId; 4]> {
    register.iter().collect::<Vec<_>>().try_into().ok()
}

impl<'a> Compiled<'a> {
    /// Reads the pattern and compiles the hook of an instruction.
    fn new(
        instruction: &'a Instruction,
        target: &Ptx,
        compiler: &PtxHookCompiler,
    ) -> Result<Compiled<'a>, EmulateError> {
        let name = || instruction.name.clone();
        let hook_error = |reason: PtxHookError| EmulateError::PtxHook {
            instruction: name(),
            reason: Box::new(reason),
        };
        let pattern = PtxPattern::new(instruction).map_err(|reason| EmulateError::PtxPattern {
            instruction: name(),
            reason: Box::new(reason),
        })?;
        let declarations =
            compiler.declarations(&source(instruction, ""), target).map_err(hook_error)?;
        let mut functions = declarations.functions.iter();
        let Some(hook) = functions.find(|found| found.name == instruction.function) else {
            return Err(hook_error(PtxHookError::NoFunction {
                source_name: instruction.source.name.clone(),
                function: instruction.function.clone(),
                present: declarations.hooks().map(|hook| hook.name.clone()).collect(),
            }));
        };
        let wrong = |reason: String| EmulateError::Signature {
            instruction: name(),
            prototype: hook.to_string(),
            reason,
        };
        let passed = passed(instruction, &pattern, hook).map_err(wrong)?;
        let destinations: Vec<&NamedOperand> =
            pattern.operands.iter().filter(|operand| operand.is_written).collect();
        let structure = hook.result.strip_prefix("struct ").map(str::trim);
        let members = structure.and_then(|name| declarations.structures.get(name));
        check_result(instruction, hook, &destinations, members.map(Vec::len)).map_err(wrong)?;
        let members = members.map(Vec::as_slice).unwrap_or_default();
        let wrapper = text(hook, &passed, &destinations, members, instruction.lanes);
        let library =
            compiler.compile(&source(instruction, &wrapper), target).map_err(hook_error)?;
        let arguments = passed.iter().filter_map(|passed| match passed {
            Passed::Operand(operand) => {
                pattern.operands.iter().position(|found| found.name == operand.name)
            }
            Passed::ExecutingLanes => None,
        });
        let arguments = arguments.collect();
        Ok(Compiled { instruction, pattern, library, arguments })
    }

    /// Arguments of the wrapper, given the values of the named operands.
    fn arguments(&self, values: &[OperandValue]) -> Vec<Argument> {
        let mut arguments = Vec::new();
        for index in &self.arguments {
            match values.get(*index) {
                Some(OperandValue::Number(number)) => arguments.push(Argument::Constant(*number)),
                Some(OperandValue::Register(register)) => match quarters(*register) {
                    Some([a, b, c, d]) => {
                        arguments.extend([Argument::Words(a, b), Argument::Words(c, d)]);
                    }
                    None => arguments.push(Argument::Register(*register)),
                },
                None => {}
            }
        }
        arguments.extend((self.instruction.lanes == Lanes::All).then_some(Argument::Guard));
        arguments
    }

    /// Places of the wrapper's results, given the values of the named operands.
    fn results(&self, values: &[OperandValue]) -> Vec<Place> {
        let operands = self.pattern.operands.iter().zip(values);
        let written = operands.filter(|(operand, _)| operand.is_written);
        let places = |register| match quarters(register) {
            Some([a, b, c, d]) => vec![Place::Words(a, b), Place::Words(c, d)],
            None => vec![Place::Register(register)],
        };
        written.filter_map(|(_, value)| register_of(value)).flat_map(places).collect()
    }
}

/// The operands that a hook's parameters receive, by name.
///
/// # Errors
/// A parameter that is not named like an operand that the proxy reads, or a source without parameter.
fn passed<'p>(
    instruction: &Instruction,
    pattern: &'p PtxPattern,
    hook: &Signature,
) -> Result<Vec<Passed<'p>>, String> {
    let readable = || pattern.operands.iter().filter(|operand| operand.is_read);
    let mut passed = Vec::new();
    for parameter in &hook.parameters {
        let operand = readable().find(|operand| operand.name == parameter.name);
        passed.push(match (operand, parameter.name.as_str()) {
            (Some(operand), _) => Passed::Operand(operand),
            (None, "exec") if instruction.lanes == Lanes::All => Passed::ExecutingLanes,
            (None, _) => {
                let names: Vec<&str> = readable().map(|operand| operand.name.as_str()).collect();
                return Err(format!(
                    "has a parameter `{parameter}` that is not a source operand of `{}`; expected one of {}",
                    instruction.proxy,
                    names.join(", ")
                ));
            }
        });
    }
    let is_passed = |operand: &&NamedOperand| {
        hook.parameters.iter().any(|parameter| parameter.name == operand.name)
    };
    // The old value of a destination may be ignored.
    let mut unread = readable().filter(|operand| !operand.is_written && !is_passed(operand));
    match unread.next() {
        Some(operand) => Err(format!("has no parameter for the source `{}`", operand.name)),
        None => Ok(passed),
    }
}

/// Checks that a hook has a result for each destination. `members` is the number of members of the structure that it
/// returns, if it returns one.
fn check_result(
    instruction: &Instruction,
    hook: &Signature,
    destinations: &[&NamedOperand],
    members: Option<usize>,
) -> Result<(), String> {
    match (destinations, hook.result.as_str()) {
        ([], "void") => Ok(()),
        ([], _) => {
            Err(format!("returns a result, but `{}` has no destination operand", instruction.proxy))
        }
        ([first, ..], "void") => Err(format!("returns no result for `{}`", first.name)),
        ([_], _) => Ok(()),
        (several, _) if members == Some(several.len()) => Ok(()),
        (several, _) => {
            let names: Vec<&str> = several.iter().map(|operand| operand.name.as_str()).collect();
            Err(format!(
                "returns no structure with a tag and {} members, for {}",
                several.len(),
                names.join(", ")
            ))
        }
    }
}

/// Formats locations in the code of a module for messages.
struct CodeLocations<'a> {
    code: &'a Code,
}

impl Locations<usize> for CodeLocations<'_> {
    fn describe(&self, at: usize) -> String {
        let Some(inst) = self.code.instructions.get(at) else {
            return "the end of the module".to_owned();
        };
        let function = &self.code.functions[inst.function].name;
        let line = self.code.lookup(inst.pc);
        let line = line.map(|line| format!(" ({}:{})", line.file, line.line)).unwrap_or_default();
        format!("`{}` at {} in `{function}`{line}", inst.text(), inst.pc)
    }

    fn closest_match(&self, at: usize, reason: String) -> ClosestMatch {
        let Some(inst) = self.code.instructions.get(at) else { return ClosestMatch::NoOperation };
        ClosestMatch::Inst {
            pc: inst.pc,
            function: self.code.functions[inst.function].name.to_string(),
            text: inst.text().to_owned(),
            reason,
        }
    }
}
