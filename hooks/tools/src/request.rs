//! Requests for hooks from the host side of a tool.

use super::code::{Shown, Site, ToolCode};
use super::host::{Malformed, Reader};
use super::{Tool, ToolError};
use flipwave_hooks::flow::{Disassembly, InstIndex, Key};
use flipwave_hooks::hook::{Argument, HookError, HookSource, Mask};
use flipwave_hooks::rewrite::{HookCall, Instrumentation, When};
use flipwave_isa::{AccVgpr, Inst, Register, RegisterRange, Sgpr, Value, Vgpr};
use std::sync::Arc;

/// All requests for a code object.
#[derive(Debug, Default)]
pub(super) struct Requests {
    calls: Vec<Call>,
    /// The rows of tables, by output.
    shown: Vec<Vec<Shown>>,
    /// The sites of streams, by output.
    sites: Vec<Vec<Site>>,
    /// The number of rows in memory, by output.
    pub used: Vec<u32>,
}

/// A requested call.
#[derive(Debug)]
struct Call {
    at: InstIndex,
    hook: String,
    when: When,
    line: u32,
    mask: Mask,
    arguments: Vec<Passed>,
    results: Vec<Place>,
}

/// Registers, by operand or by number.
#[derive(Clone, Copy, Debug)]
enum Place {
    Operand(u64),
    Vgpr(u64, u64),
    AccVgpr(u64, u64),
    Sgpr(u64, u64),
    Vcc,
    Exec,
}

/// An argument of a call.
#[derive(Debug)]
enum Passed {
    Place(Place),
    Value(Argument),
    /// The address of a row in the memory of an output.
    Row {
        output: usize,
        row: u32,
        offset: u64,
    },
}

/// Kinds of requests (`host.c`).
const CALL: u32 = 1;
const MASK: u32 = 2;
const ARGUMENT: u32 = 3;
const RESULT: u32 = 4;
const ADD_SHOWN: u32 = 5;
const ADD_SITE: u32 = 6;

impl Requests {
    /// Reads the answer to a request to instrument code.
    pub fn read(reader: &mut Reader<'_>, outputs: usize) -> Result<Requests, Malformed> {
        let mut requests = Requests::default();
        requests.shown.resize_with(outputs, Vec::new);
        requests.sites.resize_with(outputs, Vec::new);
        loop {
            match reader.word()? {
                0 => break,
                CALL => requests.calls.push(Call::read(reader)?),
                MASK => requests.last()?.mask = mask(reader.word()?)?,
                ARGUMENT => {
                    let argument = Passed::read(reader)?;
                    requests.last()?.arguments.push(argument);
                }
                RESULT => {
                    let place = Place::read(reader.word()?, reader.wide()?, reader.wide()?);
                    requests.last()?.results.push(place.ok_or(Malformed)?);
                }
                ADD_SHOWN => {
                    let output = reader.word()? as usize;
                    let (at, row) = (inst_index(reader)?, reader.word()?);
                    let keys = keys(reader)?;
                    let shown = Shown { at, row, keys };
                    requests.shown.get_mut(output).ok_or(Malformed)?.push(shown);
                }
                ADD_SITE => {
                    let output = reader.word()? as usize;
                    let site = Site { at: inst_index(reader)?, keys: keys(reader)? };
                    requests.sites.get_mut(output).ok_or(Malformed)?.push(site);
                }
                _ => return Err(Malformed),
            }
        }
        requests.used = (0..outputs).map(|_| reader.word()).collect::<Result<_, _>>()?;
        Ok(requests)
    }

    fn last(&mut self) -> Result<&mut Call, Malformed> {
        self.calls.last_mut().ok_or(Malformed)
    }

    /// Inserts the calls. Streams have space for `records` records.
    ///
    /// # Errors
    /// [`ToolError::Tool`] with the line of the request, if a call does not match its hook.
    pub fn insert(
        self,
        tool: &Tool,
        source: HookSource,
        records: u32,
        instrumentation: &mut Instrumentation<'_>,
    ) -> Result<ToolCode, ToolError> {
        let instructions = instrumentation.program().instructions.len();
        let mut places = self.shown.iter().flatten().map(|shown| shown.at);
        let mut sites = self.sites.iter().flatten().map(|site| site.at);
        if places.any(|at| at.number() >= instructions)
            || sites.any(|at| at.number() >= instructions)
        {
            return Err(tool.malformed(Malformed));
        }
        let index = instrumentation.add_source(source.clone());
        let mut code =
            ToolCode::new(tool.outputs().len(), self.shown, self.sites, self.used, records);
        for call in self.calls {
            let program = instrumentation.program();
            let failed = |message: String| {
                let place = tool.file().at_line(call.line);
                ToolError::Tool { place, message }
            };
            let inst = program.inst(call.at).ok_or_else(|| tool.malformed(Malformed))?;
            for passed in &call.arguments {
                if let Passed::Row { output, row, .. } = passed {
                    code.add_user(*output, *row, call.at).map_err(&failed)?;
                }
            }
            tool.check_rows(&source, &call).map_err(&failed)?;
            let arguments =
                call.arguments.iter().map(|passed| passed.argument(tool, program, inst));
            let arguments = arguments.collect::<Result<Vec<_>, _>>().map_err(&failed)?;
            let results = call.results.iter().map(|place| place.registers(program, inst));
            let results = results.collect::<Result<Vec<_>, _>>().map_err(&failed)?;
            let checked = source
                .function(&call.hook)
                .and_then(|function| function.call(&arguments, &results, inst, program.wave_size));
            match checked {
                // The engine refuses a call whose value is not available at the instruction.
                Ok(_) | Err(HookError::Unavailable { .. }) => {}
                Err(error) => return Err(failed(error.to_string())),
            }
            code.add_call(call.at, &call.hook);
            let call_at = call.at;
            let call_when = call.when;
            let call = HookCall {
                source: index,
                function: call.hook,
                arguments,
                results,
                mask: call.mask,
            };
            instrumentation.call(call_at, call_when, call);
        }
        Ok(code)
    }
}

impl Tool {
    /// Checks that hooks take the rows of a table as pointers to its structure, to numbers, or to nothing.
    fn check_rows(&self, source: &HookSource, call: &Call) -> Result<(), String> {
        let Ok(hook) = source.function(&call.hook) else { return Ok(()) };
        for (passed, parameter) in call.arguments.iter().zip(&hook.parameters) {
            let Passed::Row { output, .. } = passed else { continue };
            let Some(output) = self.outputs().get(*output) else { continue };
            let Some(target) = parameter.ctype.resolved.strip_suffix('*') else { continue };
            let target = target.trim().trim_start_matches("const ").trim_start_matches("volatile ");
            if target.starts_with("struct ") && target != output.structure {
                return Err(format!(
                    "hook `{}`, parameter `{parameter}`: the rows of `{}` are `{}`",
                    call.hook, output.name, output.structure
                ));
            }
        }
        Ok(())
    }
}

impl Call {
    fn read(reader: &mut Reader<'_>) -> Result<Call, Malformed> {
        let (at, hook) = (inst_index(reader)?, reader.text()?);
        let when = match reader.word()? {
            0 => When::Before,
            1 => When::After,
            2 => When::Instead,
            _ => return Err(Malformed),
        };
        let (line, mask) = (reader.word()?, Mask::Guest);
        Ok(Call { at, hook, when, line, mask, arguments: Vec::new(), results: Vec::new() })
    }
}

impl Passed {
    fn read(reader: &mut Reader<'_>) -> Result<Passed, Malformed> {
        let (kind, first, second) = (reader.word()?, reader.wide()?, reader.wide()?);
        if let Some(place) = Place::read(kind, first, second) {
            return Ok(Passed::Place(place));
        }
        Ok(Passed::Value(match kind {
            5 => Argument::Exec,
            6 => Argument::MemoryAddress,
            7 => Argument::Constant(first),
            8 => Argument::LaneConstant(first),
            9 => Argument::Pc,
            10 => Argument::WorkgroupId(first.min(3) as u8),
            11 => Argument::WaveInWorkgroup,
            12 => Argument::Kernarg,
            13 => Argument::Data { symbol: reader.text()?, offset: first },
            14 => {
                let output = reader.word()? as usize;
                return Ok(Passed::Row { output, row: first as u32, offset: second });
            }
            _ => return Err(Malformed),
        }))
    }

    fn argument(
        &self,
        tool: &Tool,
        program: &Disassembly,
        inst: &Inst,
    ) -> Result<Argument, String> {
        Ok(match self {
            Passed::Place(Place::Operand(index)) => Argument::Operand(*index as usize),
            Passed::Place(place) => Argument::Register(place.registers(program, inst)?),
            Passed::Value(argument) => argument.clone(),
            Passed::Row { output, offset, .. } => {
                let output = tool.outputs().get(*output).ok_or("unknown table")?;
                Argument::Data { symbol: output.name.clone(), offset: *offset }
            }
        })
    }
}

impl Place {
    fn read(kind: u32, first: u64, second: u64) -> Option<Place> {
        Some(match kind {
            0 => Place::Operand(first),
            1 => Place::Vgpr(first, second),
            2 => Place::AccVgpr(first, second),
            3 => Place::Sgpr(first, second),
            4 => Place::Vcc,
            15 => Place::Exec,
            _ => return None,
        })
    }

    /// The registers at an instruction.
    fn registers(self, program: &Disassembly, inst: &Inst) -> Result<RegisterRange, String> {
        let (first, words) = match self {
            Place::Operand(index) => {
                let operand = inst.operands.get(index as usize).ok_or_else(|| {
                    format!(
                        "`{inst}` has no operand {index}: it has {} operands, counted from 0",
                        inst.operands.len()
                    )
                })?;
                return match operand.value {
                    Value::Register(range) => Ok(range),
                    _ => Err(format!("operand {index} of `{inst}` is no register")),
                };
            }
            Place::Vgpr(first, words) => (
                u16::try_from(first).ok().filter(|n| *n < 1024).map(|n| Register::Vgpr(Vgpr(n))),
                words,
            ),
            Place::AccVgpr(first, words) => {
                (u8::try_from(first).ok().map(|n| Register::AccVgpr(AccVgpr(n))), words)
            }
            Place::Sgpr(first, words) => (
                u8::try_from(first).ok().filter(|n| *n < 106).map(|n| Register::Sgpr(Sgpr(n))),
                words,
            ),
            Place::Vcc => (Some(Register::VccLo), u64::from(program.wave_size / 32)),
            Place::Exec => (Some(Register::ExecLo), u64::from(program.wave_size / 32)),
        };
        let first = first.ok_or_else(|| format!("no register with the number of {self:?}"))?;
        match words {
            1..=32 if first.offset(words as u8 - 1).is_some() => {
                Ok(RegisterRange::new(first, words as u8))
            }
            _ => Err(format!("{words} registers from {first} do not exist; expected 1 to 32")),
        }
    }
}

fn mask(number: u32) -> Result<Mask, Malformed> {
    match number {
        1 => Ok(Mask::Single),
        2 => Ok(Mask::Whole),
        _ => Err(Malformed),
    }
}

fn inst_index(reader: &mut Reader<'_>) -> Result<InstIndex, Malformed> {
    Ok(InstIndex::new(reader.word()? as usize))
}

/// Reads the keys of a row: their number, and the texts.
fn keys(reader: &mut Reader<'_>) -> Result<Vec<Arc<str>>, Malformed> {
    let count = reader.word()?;
    (0..count).map(|_| Ok(Arc::from(reader.text()?))).collect()
}
