//! Calls of the hooks that inject a fault.

use crate::Refusal;
use crate::request::{Instructions, Request};
use flipwave_arch::{Instruction, Pc, RegisterId};
use flipwave_injector::Place;
use flipwave_injector::method::result_word;
use flipwave_ptx::{CallGraph, Class, ControlFlow, INSTRUCTION_BYTES, Inst, carry, pc_of};
use flipwave_ptx_hooks::{Argument, Instrumentation, Place as ResultPlace, Point};

/// A call of a hook.
pub(crate) struct Call {
    /// Place of the call.
    pub point: Point,
    /// Name of the hook in the library.
    pub function: &'static str,
    /// The arguments.
    pub arguments: Vec<Argument>,
    /// Place of the result.
    pub result: Option<ResultPlace>,
    /// A word that the instruction reads as it was before the hook.
    pub kept: Option<(usize, RegisterId)>,
}

/// The way of a branch that leads to where diverged lanes meet; numbered as in `branch.c`.
enum Way {
    ToMeeting = 0,
    FromMeeting = 1,
    Apart = 2,
}

/// The calls of a request. Empty if the module does not contain the instruction.
///
/// # Errors
/// [`Refusal`] if hooks cannot strike the place at one of the instructions.
pub(crate) fn calls(
    instrumentation: &Instrumentation,
    request: &Request,
) -> Result<Vec<Call>, Refusal> {
    let code = instrumentation.code();
    let numbers: Vec<usize> = match request.at {
        Instructions::At(pc) => code.number_of(pc).into_iter().collect(),
        Instructions::Of(operation) => {
            let all = code.instructions.iter().enumerate();
            all.filter(|(_, inst)| inst.operation() == operation)
                .map(|(number, _)| number)
                .collect()
        }
    };
    let mut calls = Vec::new();
    for number in numbers {
        let inst = &code.instructions[number];
        let planning = Planning { instrumentation, request, number, inst };
        let call = planning.call()?;
        if request.is_deferred {
            // Before the strike: a lane takes over its value, and then is struck again.
            calls.extend(planning.followers()?);
        }
        calls.extend(call);
    }
    Ok(calls)
}

/// Plans the call at one instruction.
struct Planning<'a> {
    instrumentation: &'a Instrumentation,
    request: &'a Request,
    number: usize,
    inst: &'a Inst,
}

impl Planning<'_> {
    fn call(&self) -> Result<Option<Call>, Refusal> {
        match self.request.place {
            Place::Register(register) => self.strike(register).map(Some),
            Place::Destination(word) => match result_word(self.inst, word) {
                Some(register) => self.strike(register).map(Some),
                None => Ok(None),
            },
            Place::Source(register) => self.strike_read(register).map(Some),
            Place::Branch => self.decide().map(Some),
            Place::Memory { .. } => self.strike_memory("strike_memory", Vec::new()).map(Some),
            Place::Lds(_) => self.strike_memory("strike_lds", Vec::new()).map(Some),
            Place::Scratch(_) => {
                self.strike_memory("strike_scratch", vec![Argument::Guard]).map(Some)
            }
            place => Err(Refusal::Place(place)),
        }
    }

    /// Strikes a register after the instruction.
    fn strike(&self, register: RegisterId) -> Result<Call, Refusal> {
        let (value, result, _) = self.words(register)?;
        let point = self.after()?;
        let is_early = matches!(point, Point::Before(_));
        // Calls and returns save and restore the registers of functions that call themselves.
        let code = self.instrumentation.code();
        if is_early
            && matches!(self.inst.form.opcode(), "call" | "ret")
            && CallGraph::of(code).recursive.contains(&self.inst.function)
        {
            return Err(self.no_after());
        }
        let is_read = self.inst.accesses().sources.contains(&register);
        Ok(Call {
            point,
            function: "strike_lanes",
            arguments: vec![value, Argument::Guard],
            result: Some(result),
            kept: (is_early && is_read).then_some((self.number, register)),
        })
    }

    /// Strikes a register as the instruction reads it.
    fn strike_read(&self, register: RegisterId) -> Result<Call, Refusal> {
        let (value, _, result) = self.words(register)?;
        Ok(Call {
            point: Point::Before(self.number),
            function: "strike_read",
            arguments: vec![value],
            result: Some(result),
            kept: None,
        })
    }

    /// The value at a register, and its places after the instruction and as the instruction reads it.
    fn words(&self, register: RegisterId) -> Result<(Argument, ResultPlace, ResultPlace), Refusal> {
        let check = |word| {
            let checked = self.instrumentation.check_word(self.number, word);
            checked.map_err(Refusal::Engine)
        };
        check(register)?;
        if self.request.words() == 1 {
            let (word, read) = (ResultPlace::Word(register), ResultPlace::ReadWord(register));
            return Ok((Argument::Word(register), word, read));
        }
        let high = register.offset(1).ok_or(Refusal::Place(self.request.place))?;
        check(high)?;
        let (word, read) =
            (ResultPlace::Words(register, high), ResultPlace::ReadWords(register, high));
        Ok((Argument::Words(register, high), word, read))
    }

    /// Calls that keep track of the struck register in all lanes of its function, and change it when lanes continue.
    fn followers(&self) -> Result<Vec<Call>, Refusal> {
        let (Place::Register(register) | Place::Source(register)) = self.request.place else {
            return Err(Refusal::Place(self.request.place));
        };
        let (value, result, _) = self.words(register)?;
        let code = self.instrumentation.code();
        let function = &code.functions[self.inst.function];
        if register == carry() || CallGraph::of(code).recursive.contains(&self.inst.function) {
            let name = code.register_name(self.inst.pc, register);
            let name = name.unwrap_or_else(|| register.to_string());
            let reason =
                format!("hooks do not know {name} of lanes that do not reach the instruction");
            return Err(Refusal::Engine(reason));
        }
        let words: Vec<RegisterId> =
            (0..self.request.words()).filter_map(|word| register.offset(word.into())).collect();
        let is_written =
            |inst: &Inst| words.iter().any(|word| inst.accesses().destinations.contains(word));
        let mirror = |point| Call {
            point,
            function: "mirror",
            arguments: vec![value.clone()],
            result: None,
            kept: None,
        };
        let writers = function.instructions.clone();
        let writers = writers.filter(|number| is_written(&code.instructions[*number]));
        let entry = Point::Entry(self.inst.function);
        let mut calls: Vec<Call> =
            std::iter::once(entry).chain(writers.map(Point::After)).map(mirror).collect();
        let blocks = self.instrumentation.block_entries(self.inst.function);
        calls.extend(blocks.into_iter().map(|point| Call {
            point,
            function: "resume",
            arguments: vec![value.clone()],
            result: Some(result),
            kept: None,
        }));
        Ok(calls)
    }

    fn strike_memory(
        &self,
        function: &'static str,
        arguments: Vec<Argument>,
    ) -> Result<Call, Refusal> {
        let point = self.after()?;
        // Calls copy their arguments from local memory, and returns copy results to it.
        let is_scratch = matches!(self.request.place, Place::Scratch(_));
        if is_scratch && matches!(self.inst.form.opcode(), "call" | "ret") {
            return Err(self.no_after());
        }
        Ok(Call { point, function, arguments, result: None, kept: None })
    }

    /// Changes the decision of a branch.
    fn decide(&self) -> Result<Call, Refusal> {
        let instruction = || self.inst.text().to_owned();
        let next = Pc(self.inst.pc.0.wrapping_add(INSTRUCTION_BYTES.into()));
        let target = self.inst.conditional_target().filter(|target| *target != next);
        let target = target.ok_or_else(|| Refusal::NoDecision { instruction: instruction() })?;
        let code = self.instrumentation.code();
        let flow = ControlFlow::of(code, &code.functions[self.inst.function]);
        let meeting = flow.reconvergence(self.number).map(pc_of);
        let way = if meeting == Some(target) {
            Way::ToMeeting
        } else if meeting == Some(next) {
            Way::FromMeeting
        } else if target > next {
            Way::Apart
        } else {
            return Err(Refusal::Backward { instruction: instruction() });
        };
        Ok(Call {
            point: Point::Before(self.number),
            function: "decide",
            arguments: vec![Argument::Guard, Argument::Constant(way as u64)],
            result: Some(ResultPlace::Decision),
            kept: None,
        })
    }

    /// Place of a hook that changes the state after the instruction. Instructions that lead elsewhere change no
    /// register or memory: their hooks run before. So do those of barriers, where other waves may continue.
    fn after(&self) -> Result<Point, Refusal> {
        match (self.inst.form.class(), self.inst.form.opcode()) {
            (None, _) | (Some(Class::Event), _) | (_, "trap") => Err(self.no_after()),
            (Some(Class::Control | Class::Call), _) | (_, "bar" | "barrier") => {
                Ok(Point::Before(self.number))
            }
            _ => Ok(Point::After(self.number)),
        }
    }

    fn no_after(&self) -> Refusal {
        Refusal::NoAfter { instruction: self.inst.text().to_owned(), place: self.request.place }
    }
}
