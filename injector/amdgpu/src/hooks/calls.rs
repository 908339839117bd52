//! Hook calls of a request.

use super::Refusal;
use super::request::{Instructions, Request};
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_hooks::hook::{Argument, Mask};
use flipwave_hooks::rewrite::{HookCall, SourceIndex, When};
use flipwave_injector::Place;
use flipwave_injector::hooks::name_in_source;
use flipwave_injector::method::result_word;
use flipwave_isa::{Class, Control, Inst, LanesWritten, Opcode, Pc, Register, RegisterRange};

/// A call and its position.
pub(super) type Call = (InstIndex, When, HookCall);

/// Collects the calls of one request.
struct Calls<'a> {
    program: &'a Disassembly,
    request: &'a Request,
    calls: Vec<Call>,
}

/// Returns the calls that a request needs in a program; none if the program does not contain the
/// instruction.
///
/// # Errors
/// [`Refusal`] if hooks cannot do what the request needs.
pub(super) fn calls(program: &Disassembly, request: &Request) -> Result<Vec<Call>, Refusal> {
    let mut calls = Calls { program, request, calls: Vec::new() };
    match request.at {
        Instructions::At(pc) => {
            if let Some((at, inst)) = program.at(pc).and_then(|at| Some((at, program.inst(at)?))) {
                calls.add(at, inst, request.place)?;
            }
        }
        Instructions::Of(opcode) => {
            for (at, inst) in program
                .executable_insts()
                .filter(|(_, inst)| inst.operation.name() == opcode.name())
            {
                if let Some(register) = destination(inst, request) {
                    calls.add(at, inst, Place::Register(register.into()))?;
                }
            }
        }
    }
    Ok(calls.calls)
}

/// The register of the word that a permanent fault strikes.
fn destination(inst: &Inst, request: &Request) -> Option<Register> {
    let Place::Destination(number) = request.place else { return None };
    let register = Register::of_id(result_word(inst, number)?);
    register.filter(|register| register.is_per_lane() == request.is_per_lane)
}

impl Calls<'_> {
    fn add(&mut self, at: InstIndex, inst: &Inst, place: Place) -> Result<(), Refusal> {
        let known = |register| Register::of_id(register).ok_or(Refusal::Place(place));
        match place {
            Place::Register(register) => self.strike_register(at, inst, known(register)?),
            Place::Source(register) => self.lend(at, inst, known(register)?),
            Place::Branch => self.decide(at, inst),
            Place::Memory { .. } => {
                let when = self.after(inst)?;
                self.call(at, when, "strike_memory", Vec::new(), None, Mask::Single);
                Ok(())
            }
            Place::Lds(_) => {
                let when = self.after(inst)?;
                self.call(at, when, "strike_lds", Vec::new(), None, Mask::Single);
                Ok(())
            }
            place => Err(Refusal::Place(place)),
        }
    }

    /// Strikes a register after an instruction.
    fn strike_register(
        &mut self,
        at: InstIndex,
        inst: &Inst,
        register: Register,
    ) -> Result<(), Refusal> {
        self.check_register(at, inst, register)?;
        let when = self.after(inst)?;
        let range = RegisterRange::new(register, self.request.words());
        let mut arguments = vec![Argument::Register(range)];
        if !register.is_per_lane() {
            self.call(at, when, "strike_wave", arguments, Some(range), Mask::Single);
            return Ok(());
        }
        let is_active = self.request.is_active;
        let function = match inst.lanes_written() {
            LanesWritten::Some if is_active => {
                return Err(Refusal::OwnLanes { instruction: inst.text.clone() });
            }
            LanesWritten::All => {
                arguments.push(Argument::Constant(u64::MAX));
                "strike_lanes"
            }
            _ if is_active && inst.exec_change().is_some() => {
                let exec = vec![Argument::Exec];
                self.call(at, When::Before, "see_exec", exec, None, Mask::Single);
                "strike_lanes_seen"
            }
            _ => {
                arguments.push(Argument::Exec);
                "strike_lanes"
            }
        };
        self.call(at, when, function, arguments, Some(range), Mask::All);
        Ok(())
    }

    /// Changes a register before an instruction and restores it after the instruction.
    fn lend(&mut self, at: InstIndex, inst: &Inst, register: Register) -> Result<(), Refusal> {
        self.check_register(at, inst, register)?;
        if !matches!(self.control(inst), Control::Next | Control::Branch | Control::Conditional) {
            return Err(no_after(inst));
        }
        let range = RegisterRange::new(register, self.request.words());
        let value = || vec![Argument::Register(range)];
        let is_word_written = |word| inst.writes.iter().any(|range| range.contains(word));
        let bits = range.iter().zip([u64::from(u32::MAX), u64::from(u32::MAX) << 32]);
        let written =
            bits.filter(|(word, _)| is_word_written(*word)).fold(0, |all, (_, bits)| all | bits);
        let is_written = written != 0;
        if !register.is_per_lane() {
            self.call(at, When::Before, "lend_wave", value(), Some(range), Mask::Single);
            if !is_written {
                self.call(at, When::After, "give_back_wave", value(), Some(range), Mask::Single);
            }
            return Ok(());
        }
        let exec = [value(), vec![Argument::Exec]].concat();
        self.call(at, When::Before, "lend_lanes", exec, Some(range), Mask::All);
        match inst.lanes_written() {
            LanesWritten::All if range.iter().all(is_word_written) => Ok(()),
            LanesWritten::All | LanesWritten::Some if is_written => {
                Err(Refusal::OwnLanes { instruction: inst.text.clone() })
            }
            _ => {
                let arguments = [value(), vec![Argument::Constant(written)]].concat();
                let function = "give_back_lanes";
                self.call(at, When::After, function, arguments, Some(range), Mask::All);
                Ok(())
            }
        }
    }

    /// Changes the decision of a branch.
    fn decide(&mut self, at: InstIndex, inst: &Inst) -> Result<(), Refusal> {
        let refused = || Refusal::NoDecision { instruction: inst.text.clone() };
        let next = Pc(inst.pc.0.wrapping_add(inst.size.into()));
        if self.control(inst) != Control::Conditional || inst.branch_target == Some(next) {
            return Err(refused());
        }
        let words = if self.program.wave_size == 64 { 2 } else { 1 };
        let (first, words, takes_zero) = match inst.operation.opcode() {
            Opcode::SCbranchScc0 => (Register::Scc, 1, true),
            Opcode::SCbranchScc1 => (Register::Scc, 1, false),
            Opcode::SCbranchVccz => (Register::VccLo, words, true),
            Opcode::SCbranchVccnz => (Register::VccLo, words, false),
            Opcode::SCbranchExecz => (Register::ExecLo, words, true),
            Opcode::SCbranchExecnz => (Register::ExecLo, words, false),
            _ => return Err(refused()),
        };
        let tested = RegisterRange::new(first, words);
        let [decide, give_back] = match words {
            2 => ["decide", "give_back"],
            _ => ["decide_word", "give_back_word"],
        };
        let value = || vec![Argument::Register(tested)];
        let arguments = [value(), vec![Argument::Constant(takes_zero.into())]].concat();
        self.call(at, When::Before, decide, arguments, Some(tested), Mask::Single);
        self.call(at, When::After, give_back, value(), Some(tested), Mask::Single);
        Ok(())
    }

    /// Position of a hook that runs right after an instruction. For a barrier and for the end of a
    /// wave, which change nothing that can be struck, the hook runs before the instruction, so that it
    /// runs before other waves continue.
    fn after(&self, inst: &Inst) -> Result<When, Refusal> {
        if inst.class() == Class::Barrier || inst.ends_wave() {
            return Ok(When::Before);
        }
        match self.control(inst) {
            Control::Next | Control::Branch | Control::Conditional => Ok(When::After),
            Control::Jump | Control::Call | Control::End | Control::Unknown(_) => {
                Err(no_after(inst))
            }
        }
    }

    fn control(&self, inst: &Inst) -> Control {
        inst.control(self.program.target.generation())
    }

    /// Rejects registers that a wave of this size does not have, and registers in which an instruction
    /// computes a code address.
    fn check_register(
        &self,
        at: InstIndex,
        inst: &Inst,
        register: Register,
    ) -> Result<(), Refusal> {
        let lanes = self.program.wave_size;
        if register == Register::ExecHi && lanes == 32 {
            return Err(Refusal::Lanes { lanes });
        }
        let belongs_to = |chain: &flipwave_hooks::flow::AddressChain| {
            [chain.getpc, chain.low, chain.high].contains(&at)
        };
        let is_of_code = inst.operation.opcode() == Opcode::SGetpc
            || self.program.addresses.iter().any(belongs_to);
        let mut touched = inst.reads.iter().chain(&inst.writes);
        if is_of_code && touched.any(|range| range.contains(register)) {
            return Err(Refusal::CodeAddress { instruction: inst.text.clone() });
        }
        Ok(())
    }

    /// Adds a call; the arguments that identify the wave follow the other arguments.
    fn call(
        &mut self,
        at: InstIndex,
        when: When,
        function: &str,
        mut arguments: Vec<Argument>,
        result: Option<RegisterRange>,
        mask: Mask,
    ) {
        arguments.extend((0..3).map(Argument::WorkgroupId));
        arguments.push(Argument::WaveInWorkgroup);
        let call = HookCall {
            source: SourceIndex(0),
            function: name_in_source(self.request.function, function),
            arguments,
            results: result.into_iter().collect(),
            mask,
        };
        self.calls.push((at, when, call));
    }
}

fn no_after(inst: &Inst) -> Refusal {
    Refusal::NoAfter { instruction: inst.text.clone() }
}
