//! Insertion of requested hooks into AMD's code.

use super::code::ToolCode;
use super::host::Malformed;
use super::request::{Passed, Place, Requests};
use super::{Tool, ToolError};
use flipwave_hooks::flow::{Disassembly, Key};
use flipwave_hooks::hook::{Argument, HookError, HookSource};
use flipwave_hooks::rewrite::{HookCall, Instrumentation};
use flipwave_isa::{AccVgpr, Inst, Register, RegisterRange, Sgpr, Value, Vgpr};

impl Requests {
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
            if let Ok(hook) = source.function(&call.hook) {
                call.check_rows(tool.outputs(), hook).map_err(&failed)?;
            }
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

impl Passed {
    fn argument(
        &self,
        tool: &Tool,
        program: &Disassembly,
        inst: &Inst,
    ) -> Result<Argument, String> {
        Ok(match self {
            Passed::Place(Place::Operand(index)) => Argument::Operand(*index as usize),
            Passed::Place(place) => Argument::Register(place.registers(program, inst)?),
            // Guards do not exist.
            Passed::ActiveLanes | Passed::ReachingLanes => Argument::Exec,
            Passed::Address => Argument::MemoryAddress,
            Passed::Number(number) => Argument::Constant(*number),
            Passed::LaneNumber(number) => Argument::LaneConstant(*number),
            Passed::Pc => Argument::Pc,
            Passed::Workgroup(dimension) => Argument::WorkgroupId(*dimension),
            Passed::Wave => Argument::WaveInWorkgroup,
            Passed::KernelArguments => Argument::Kernarg,
            Passed::Variable { name, offset } => {
                Argument::Data { symbol: name.clone(), offset: *offset }
            }
            Passed::Row { output, offset, .. } => {
                let output = tool.outputs().get(*output).ok_or("unknown table")?;
                Argument::Data { symbol: output.name.clone(), offset: *offset }
            }
        })
    }
}

impl Place {
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
