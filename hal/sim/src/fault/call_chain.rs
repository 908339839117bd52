//! The functions that a wave is executing.
//!
//! LLVM describes functions of AMDGPU code in `.debug_frame` without any rule about registers, so the
//! chain follows from the code: a function's return address is in `s[30:31]` at its entry (AMDGPUUsage,
//! "Non-Kernel Functions"), and [`FunctionCode`] proves where it is later. If it is not proven, the chain
//! ends there.

use super::function::FunctionCode;
use super::registers::{Activation, Registers};
use super::stopped_wave::{LoadedCode, StoppedWave};
use crate::instruction::Op;
use crate::memory::Memory;
use flipwave_device::ChainEnd;
use flipwave_isa::{Opcode, Register, RegisterRange, Sgpr, Value};

/// Maximum number of functions in a chain.
const MAX_DEPTH: usize = 256;

/// The registers of the return address.
const RETURN_ADDRESS: RegisterRange = RegisterRange { first: Register::Sgpr(Sgpr(30)), words: 2 };

/// A place in the code of a function that is being executed, as a device address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodePlace {
    /// The instruction that faulted or waits.
    Current(u64),
    /// The instruction to return to. It may be the first of another function, if the call never returns.
    Return(u64),
}

impl CodePlace {
    /// The device address.
    pub fn pc(self) -> u64 {
        match self {
            CodePlace::Current(pc) | CodePlace::Return(pc) => pc,
        }
    }

    /// An address in the instruction that is being executed: for callers, the call.
    pub fn probe(self) -> u64 {
        match self {
            CodePlace::Current(pc) => pc,
            CodePlace::Return(pc) => pc.wrapping_sub(1),
        }
    }
}

/// The places in the functions being executed, innermost first, and the reason why there are no more.
pub fn call_chain<'a>(
    stopped: &'a StoppedWave,
    code: LoadedCode<'a>,
    memory: &'a mut dyn Memory,
) -> (Vec<CodePlace>, ChainEnd) {
    let mut registers = Registers::new(&stopped.wave, memory);
    let mut places = vec![CodePlace::Current(stopped.pc)];
    let end = loop {
        let place = places[places.len() - 1];
        match caller(place, code, &mut registers) {
            Ok(_) if places.len() == MAX_DEPTH => break ChainEnd::TooLong,
            Ok(caller) => places.push(caller),
            Err(end) => break end,
        }
    };
    (places, end)
}

/// The place in the caller of the function at `place`. Adds the function to the activations of
/// `registers`, whose innermost ones are those before.
fn caller<'a>(
    place: CodePlace,
    code: LoadedCode<'a>,
    registers: &mut Registers<'a>,
) -> Result<CodePlace, ChainEnd> {
    let unknown = |reason: &'static str| ChainEnd::UnknownCaller(reason.into());
    let Some((program, module)) = code.at(place.probe()) else {
        return jump_source(place, code, registers)
            .ok_or_else(|| unknown("the address is not in loaded code"));
    };
    let probe = program.virtual_address(place.probe());
    let object = module.code_object.as_ref().ok_or_else(|| unknown("no code object is known"))?;
    let (_, extent) = object
        .function_extent(probe)
        .ok_or_else(|| unknown("no symbol says where the function begins"))?;
    if object.kernels().iter().any(|kernel| extent.contains(&kernel.start())) {
        return Err(ChainEnd::Kernel);
    }
    let [start, end] = [extent.start, extent.end].map(|pc| program.device_address(pc));
    let function = FunctionCode::read(program, start..end)
        .ok_or_else(|| unknown("the function's code cannot be analysed"))?;
    let index = function
        .index_of(place.pc())
        .ok_or_else(|| unknown("the address is inside an instruction"))?;
    registers.enter(Activation { function, index });
    let return_address = registers
        .caller_pair(RETURN_ADDRESS)
        .ok_or_else(|| unknown("the code does not prove where its return address is"))?;
    if call_before(return_address, code).is_none() {
        return Err(unknown("its return address does not follow a call"));
    }
    Ok(CodePlace::Return(return_address))
}

/// The call before a device address that leaves this address in `s[30:31]`. All calls have four bytes.
fn call_before(return_address: u64, code: LoadedCode<'_>) -> Option<&Op> {
    let call = return_address.checked_sub(4).filter(|call| call.is_multiple_of(4))?;
    let (program, _) = code.at(call)?;
    let op = program.fetch(call).ok()?;
    let is_call = matches!(op.inst.operation.opcode(), Opcode::SSwappc | Opcode::SCall);
    let links = op
        .inst
        .destinations()
        .any(|operand| matches!(operand.value, Value::Register(range) if range == RETURN_ADDRESS));
    (is_call && links && op.size == 4).then_some(op)
}

/// The call that has led to an address outside all code, if its target is still known to be this address.
fn jump_source(
    place: CodePlace,
    code: LoadedCode<'_>,
    registers: &mut Registers<'_>,
) -> Option<CodePlace> {
    let CodePlace::Current(pc) = place else { return None };
    let return_address = registers.caller_pair(RETURN_ADDRESS)?;
    let target = match call_before(return_address, code)?.inst.source(0)? {
        Value::Register(target) => registers.caller_pair(*target)?,
        Value::Integer(target) => *target as u64,
        Value::Literal(target) => (*target).into(),
        _ => return None,
    };
    (target == pc).then_some(CodePlace::Return(return_address))
}
