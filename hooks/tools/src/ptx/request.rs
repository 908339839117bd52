//! Insertion of requested hooks into PTX.

use super::scope::PtxScope;
use super::wrapper;
use super::{access, facts};
use crate::code::ToolCode;
use crate::host::{IncludeFolders, Malformed, PUSH};
use crate::inst_facts::OperationNumbers;
use crate::request::{Call, Passed, Place, Requests};
use crate::tool::device_source;
use crate::{Options, Tool, ToolError, ToolFile};
use flipwave_arch::{Architecture, RegisterId};
use flipwave_hooks::flow::Key;
use flipwave_hooks::hook::{Declarations, Mask, Signature, Source};
use flipwave_hooks::rewrite::{Refused, When};
use flipwave_ptx::{Argument as Operand, Inst, Ptx, WARP_SIZE, WORDS};
use flipwave_ptx_hooks::{
    Argument, HookCall, Instrumentation, Lanes, LibraryIndex, Place as ResultPlace, Point,
    PtxHookCompiler, PtxHookError,
};
use std::collections::HashMap;

/// A tool that runs, for PTX.
pub struct PtxTool {
    /// The tool.
    pub tool: Tool,
    compiler: PtxHookCompiler,
    target: Ptx,
    declarations: Declarations,
}

/// Hooks of a tool in a module.
pub struct Requested {
    /// The meaning of the numbers in memory.
    pub code: ToolCode,
    /// The hooks, whose variables are those of the tool.
    pub library: LibraryIndex,
    /// Calls that cannot be inserted.
    pub refused: Vec<Refused>,
}

/// How a wrapper gets the value of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Passing {
    /// A parameter.
    Value,
    /// The address of a variable, plus an offset in a parameter.
    Variable(String),
    ActiveLanes,
    ReachingLanes,
    Workgroup(u8),
    Wave,
}

impl Passing {
    /// Returns `true` if the wrapper has a parameter for the argument.
    pub fn is_parameter(&self) -> bool {
        matches!(self, Passing::Value | Passing::Variable(_))
    }
}

/// A call with the properties that its wrapper depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Prepared {
    hook: String,
    pub passing: Vec<Passing>,
    /// `true` to run the hook in one lane of those that reach the instruction.
    pub runs_once: bool,
    pub has_result: bool,
}

/// A call of a wrapper.
struct Insertion {
    point: Point,
    /// Number of the wrapper.
    wrapper: usize,
    arguments: Vec<Argument>,
    result: Option<ResultPlace>,
    lanes: Lanes,
}

impl PtxTool {
    /// Compiles a tool and starts its host side.
    ///
    /// # Errors
    /// See [`Tool::start`]; [`ToolError::AmdgpuOnly`] for options that PTX does not have.
    pub fn start(
        file: &ToolFile,
        options: &Options,
        compiler: &PtxHookCompiler,
        target: &Ptx,
    ) -> Result<PtxTool, ToolError> {
        if options.placement.is_some() {
            let target = target.target().to_owned();
            return Err(ToolError::AmdgpuOnly { option: "--placement", target });
        }
        let folders = IncludeFolders::prepare()?;
        let source = ptx_source(file, &folders, &[], "");
        let declarations = compiler.declarations(&source, target).map_err(Box::new)?;
        let tool = Tool::start_host(file, folders, &declarations)?;
        let compiler = compiler.clone();
        Ok(PtxTool { tool, compiler, target: target.clone(), declarations })
    }

    /// Requests the tool's hooks for the code of `scope`, a scope of the code that is instrumented.
    ///
    /// # Errors
    /// [`ToolError`] if the tool fails, or a request does not match its hook.
    pub(super) fn request_hooks(
        &self,
        instrumentation: &mut Instrumentation,
        options: &Options,
        scope: &PtxScope<'_>,
    ) -> Result<Requested, ToolError> {
        let tool = &self.tool;
        let write = |writer: &mut _, numbers: &mut OperationNumbers| {
            facts::write(writer, scope, self.target.target(), numbers);
        };
        let requests = tool.request(write).map_err(|error| at_inst(error, scope))?;
        let records = options.records.max(1);
        let macros = tool.capacity_macros(&requests, records)?;
        let Requests { calls, shown, sites, used } = requests;
        let count = scope.code().instructions.len();
        let mut places = shown.iter().flatten().map(|shown| shown.at);
        let mut known_sites = sites.iter().flatten().map(|site| site.at);
        if places.any(|at| at.number() >= count) || known_sites.any(|at| at.number() >= count) {
            return Err(tool.malformed(Malformed));
        }
        let mut code = ToolCode::new(tool.outputs().len(), shown, sites, used, records);
        let (mut wrappers, mut text) = (HashMap::new(), String::new());
        let (mut insertions, mut refused) = (Vec::new(), Vec::new());
        for call in &calls {
            let inst = scope.code().instructions.get(call.at.number());
            let inst = inst.ok_or_else(|| tool.malformed(Malformed))?;
            let failed = |message: String| ToolError::Tool {
                place: tool.file().at_line(call.line),
                message,
            };
            for passed in &call.arguments {
                if let Passed::Row { output, row, .. } = passed {
                    code.add_user(*output, *row, call.at).map_err(failed)?;
                }
            }
            let hook = self.hook(&call.hook).map_err(failed)?;
            call.check_rows(tool.outputs(), hook).map_err(failed)?;
            code.add_call(call.at, &call.hook);
            if let Err(reason) = check_place(call, inst) {
                refused.push(Refused {
                    pc: inst.pc,
                    instruction: inst.text().to_owned(),
                    when: call.when,
                    hook: call.hook.clone(),
                    reason,
                });
                continue;
            }
            let prepared = Preparing { tool, instrumentation, scope, call, inst };
            let (prepared, mut insertion) = prepared.prepare(hook).map_err(failed)?;
            let next = wrappers.len();
            insertion.wrapper = *wrappers.entry(prepared).or_insert_with_key(|prepared| {
                text.push_str(&wrapper::text(next, prepared, hook));
                next
            });
            insertions.push(insertion);
        }
        let source = ptx_source(tool.file(), tool.folders(), &macros, &text);
        // Modules may be for an older target than the GPU.
        let target = instrumentation.target().and_then(Ptx::new);
        let target = target.unwrap_or_else(|| self.target.clone());
        let compiled = self.compiler.compile(&source, &target).map_err(Box::new)?;
        let library = instrumentation.add_library(compiled);
        for Insertion { point, wrapper, arguments, result, lanes } in insertions {
            let function = wrapper::name(wrapper);
            let results = result.into_iter().collect();
            let call = HookCall { library, function, arguments, results, lanes };
            instrumentation.call(point, call).map_err(Box::new)?;
        }
        code.set_refused_at(
            refused.iter().filter_map(|refused| scope.code().number_of(refused.pc)),
        );
        Ok(Requested { code, library, refused })
    }

    fn hook(&self, name: &str) -> Result<&Signature, String> {
        self.declarations.hooks().find(|hook| hook.name == name).ok_or_else(|| {
            let present = self.declarations.hooks().map(|hook| hook.name.clone()).collect();
            let (source_name, function) = (self.tool.file().name.clone(), name.to_owned());
            PtxHookError::NoFunction { source_name, function, present }.to_string()
        })
    }
}

/// The hooks of a tool as a source for PTX, followed by wrappers.
fn ptx_source(
    file: &ToolFile,
    folders: &IncludeFolders,
    macros: &[(String, String)],
    wrappers: &str,
) -> Source {
    let mut source = device_source(file, folders, macros);
    source.include.insert(file.include.len(), folders.ptx.clone());
    let defines = [
        ("FLIPWAVE_LANES", WARP_SIZE.to_string()),
        // The header for hooks of injections declares other functions with the same names.
        ("FLIPWAVE_PTX_H", "1".to_owned()),
    ];
    source.defines.extend(defines.map(|(name, value)| (name.to_owned(), value)));
    // Only wrappers exist as functions of the module; hooks of any size are inlined.
    let inline =
        "#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)\n";
    let pop = "#pragma clang attribute pop\n";
    let name = flipwave_hooks::hook::c_string(&file.name);
    source.text = format!(
        "{inline}#include <flipwave.h>\n{PUSH}# 1 {name}\n{}\n{pop}{pop}# 1 \"<flipwave>\"\n{wrappers}",
        file.text
    );
    source
}

/// Adds the text of the instruction that the tool failed at.
fn at_inst(error: ToolError, scope: &PtxScope<'_>) -> ToolError {
    error.at(|index| {
        let inst = scope.code().instructions.get(index)?;
        Some(format!("`{}` at pc {}", inst.text(), inst.pc))
    })
}

/// Checks that code can run at the place of a call.
fn check_place(call: &Call, inst: &Inst) -> Result<(), String> {
    let leaves = matches!(inst.form.opcode(), "bra" | "brx" | "ret" | "exit" | "trap");
    if call.when == When::After && leaves {
        return Err("lanes do not continue after it".to_owned());
    }
    Ok(())
}

/// Preparation of a call.
struct Preparing<'a> {
    tool: &'a Tool,
    instrumentation: &'a Instrumentation,
    scope: &'a PtxScope<'a>,
    call: &'a Call,
    inst: &'a Inst,
}

impl Preparing<'_> {
    /// The call, whose wrapper has no number yet.
    fn prepare(&self, hook: &Signature) -> Result<(Prepared, Insertion), String> {
        let call = self.call;
        let (given, expected) = (call.arguments.len(), hook.parameters.len());
        if given != expected {
            return Err(format!(
                "hook `{hook}` has {expected} parameters, the call has {given} arguments"
            ));
        }
        let runs_once = match call.mask {
            Mask::Guest => false,
            Mask::Single => true,
            Mask::Whole | Mask::All => {
                return Err(
                    "in PTX, hooks cannot run in lanes that do not reach the instruction; \
                            remove flipwave_all_lanes"
                        .to_owned(),
                );
            }
        };
        let mut arguments = Vec::new();
        // Decides which lanes count as active.
        arguments.extend(runs_once.then_some(Argument::Guard));
        let mut passing = Vec::new();
        for passed in &call.arguments {
            let (passed, argument) = self.argument(passed)?;
            passing.push(passed);
            arguments.extend(argument);
        }
        let result = match call.results[..] {
            [] => None,
            [place] => Some(self.result(place)?),
            _ => return Err("a hook in PTX has at most one result".to_owned()),
        };
        let has_result = result.is_some();
        if has_result && runs_once {
            return Err("a hook that runs in one lane has no result for the others; \
                        remove flipwave_one_lane"
                .to_owned());
        }
        if has_result && hook.result == "void" {
            return Err(format!("hook `{hook}` has no result"));
        }
        let number = call.at.number();
        let insertion = Insertion {
            point: match call.when {
                When::Before => Point::Before(number),
                When::After => Point::After(number),
                When::Instead => Point::Instead(number),
            },
            wrapper: 0,
            arguments,
            result,
            lanes: if runs_once { Lanes::Active } else { Lanes::Executing },
        };
        Ok((Prepared { hook: call.hook.clone(), passing, runs_once, has_result }, insertion))
    }

    /// The value that a wrapper gets for an argument, if any.
    fn argument(&self, passed: &Passed) -> Result<(Passing, Option<Argument>), String> {
        let value = |argument| (Passing::Value, Some(argument));
        Ok(match passed {
            Passed::Place(place) => value(self.register(*place)?),
            Passed::ActiveLanes => (Passing::ActiveLanes, None),
            Passed::ReachingLanes => {
                // The lanes that execute the call.
                if self.call.mask != Mask::Single && self.inst.guard.is_some() {
                    return Err(
                        "the lanes that reach an instruction with a guard are known only to \
                                hooks that run once; add flipwave_one_lane"
                            .to_owned(),
                    );
                }
                (Passing::ReachingLanes, None)
            }
            Passed::Address => {
                if access::access(self.scope.code(), self.inst).is_none() {
                    return Err(format!(
                        "`{}` accesses no memory with one address per lane",
                        self.inst.text()
                    ));
                }
                value(Argument::Address)
            }
            Passed::Number(number) | Passed::LaneNumber(number) => {
                value(Argument::Constant(*number))
            }
            Passed::Pc => value(Argument::Pc),
            Passed::Workgroup(dimension @ 0..=2) => (Passing::Workgroup(*dimension), None),
            Passed::Workgroup(_) => return Err("expected a dimension from 0 to 2".to_owned()),
            Passed::Wave => (Passing::Wave, None),
            Passed::KernelArguments => {
                return Err(
                    "hooks in PTX do not get the address of the kernel's arguments".to_owned()
                );
            }
            Passed::Variable { name, offset } => {
                (Passing::Variable(name.clone()), Some(Argument::Constant(*offset)))
            }
            Passed::Row { output, offset, .. } => {
                let output = self.tool.outputs().get(*output).ok_or("unknown table")?;
                (Passing::Variable(output.name.clone()), Some(Argument::Constant(*offset)))
            }
        })
    }

    fn operand(&self, index: u64) -> Result<&Operand, String> {
        let operands = &self.inst.operands;
        let found = usize::try_from(index).ok().and_then(|index| operands.get(index));
        found.ok_or_else(|| {
            format!(
                "`{}` has no operand {index}: it has {} operands, counted from 0",
                self.inst.text(),
                operands.len()
            )
        })
    }

    /// The value of an operand, or of registers by number.
    fn register(&self, place: Place) -> Result<Argument, String> {
        match place {
            Place::Operand(index) => match self.operand(index)? {
                Operand::Register(register) if register.kind.bits() <= 64 => {
                    Ok(Argument::Operand(index as usize))
                }
                Operand::Constant(_)
                | Operand::Special(_)
                | Operand::Symbol(..)
                | Operand::Frame(_) => Ok(Argument::Operand(index as usize)),
                _ => Err(format!(
                    "operand {index} of `{}` has no value of at most 64 bits",
                    self.inst.text()
                )),
            },
            Place::Vgpr(first, words) => match (words, self.word(first)?) {
                (1, word) => Ok(Argument::Word(word)),
                (2, low) => Ok(Argument::Words(low, self.word(first + 1)?)),
                _ => Err(format!("{words} words of registers; hooks in PTX get 1 or 2")),
            },
            other => Err(missing(other)),
        }
    }

    /// The place of a result.
    fn result(&self, place: Place) -> Result<ResultPlace, String> {
        match place {
            Place::Operand(index) => match self.operand(index)? {
                Operand::Register(register) if register.kind.bits() <= 64 => {
                    Ok(ResultPlace::Register(*register))
                }
                _ => Err(format!(
                    "operand {index} of `{}` is no register of at most 64 bits",
                    self.inst.text()
                )),
            },
            Place::Vgpr(first, words) => match (words, self.word(first)?) {
                (1, word) => Ok(ResultPlace::Word(word)),
                (2, low) => Ok(ResultPlace::Words(low, self.word(first + 1)?)),
                _ => Err(format!("{words} words of registers; hooks in PTX return 1 or 2")),
            },
            other => Err(missing(other)),
        }
    }

    /// A word of the registers that hooks at the instruction can read.
    fn word(&self, number: u64) -> Result<RegisterId, String> {
        let number = u16::try_from(number).map_err(|_| format!("no register %w{number}"))?;
        let word = RegisterId { class: &WORDS, number };
        self.instrumentation.check_word(self.call.at.number(), word)?;
        Ok(word)
    }
}

/// The error for registers that PTX does not have.
fn missing(place: Place) -> String {
    match place {
        Place::AccVgpr(..) => "PTX has no AccVGPRs",
        Place::Sgpr(..) => "PTX has no SGPRs",
        Place::Vcc => "PTX has no VCC",
        Place::Exec => "PTX has no EXEC: hooks cannot change the active lanes",
        Place::Operand(_) | Place::Vgpr(..) => "the register is not available",
    }
    .to_owned()
}
