//! Registers that instructions write, for instructions that can be duplicated.

use super::differences::Width;
use crate::Reason;
use flipwave_ptx::{
    Argument, Class, Condition, FunctionCode, Inst, Instruction, Name, Operand, Register,
    SpecialRegister, carry,
};

/// A register that an instruction writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultRegister {
    /// Name in the module.
    pub name: Name,
    /// The register.
    pub register: Register,
    /// Width of its comparison.
    pub width: Width,
}

/// Cache operators and modifiers of loads that may read a different value than an earlier load, or that
/// discard what they load (PTX ISA, "Cache Operators" and "ld").
const UNREPEATABLE: [&str; 7] = ["volatile", "relaxed", "acquire", "mmio", "cg", "cv", "lu"];

/// The registers that an instruction writes. A copy writes shadows instead.
///
/// # Errors
/// The reason, if the instruction cannot be duplicated.
pub fn results(
    inst: &Inst,
    tree: &Instruction,
    function: &FunctionCode,
) -> Result<Vec<ResultRegister>, Reason> {
    let form = &inst.form;
    match form.class().ok_or(Reason::Kind)? {
        Class::Arithmetic | Class::Logic | Class::Move | Class::Convert | Class::Compare => {}
        Class::Lanes if form.opcode() == "activemask" => return Err(Reason::State),
        Class::Lanes => {}
        Class::Load if matches!(form.opcode(), "ld" | "ldu") => {
            if form.modifiers().any(|modifier| UNREPEATABLE.contains(&modifier)) {
                return Err(Reason::Coherent);
            }
        }
        Class::Matrix if matches!(form.opcode(), "mma" | "ldmatrix" | "movmatrix") => {}
        _ => return Err(Reason::Kind),
    }
    if inst.operands.iter().any(changes) {
        return Err(Reason::State);
    }
    let accesses = inst.accesses();
    if [&accesses.sources, &accesses.destinations].iter().all(|all| all.contains(&carry())) {
        return Err(Reason::Carry);
    }
    let mut results = Vec::new();
    for operand in tree.operands.iter().take(inst.written_operands()) {
        collect(operand, function, &mut results)?;
    }
    if results.is_empty() {
        return Err(Reason::Kind);
    }
    let writes_guard = |guard: Condition| accesses.destinations.contains(&guard.register);
    if inst.guard.is_some_and(writes_guard) { Err(Reason::Guard) } else { Ok(results) }
}

/// Returns `true` for special registers that may change while a lane runs (PTX ISA, "Special Registers").
fn changes(operand: &Argument) -> bool {
    use SpecialRegister::{
        Clock, Clock64, ClockHi, CurrentGraphExec, GlobalTimer, GlobalTimerHi, GlobalTimerLo,
        NsmId, NwarpId, PerformanceCounter, SmId, WarpId,
    };
    let Argument::Special(special) = operand else { return false };
    matches!(
        special.register,
        Clock
            | ClockHi
            | Clock64
            | GlobalTimer
            | GlobalTimerLo
            | GlobalTimerHi
            | PerformanceCounter(_)
            | WarpId
            | NwarpId
            | SmId
            | NsmId
            | CurrentGraphExec
    )
}

/// Adds the registers of an operand that is written.
fn collect(
    operand: &Operand,
    function: &FunctionCode,
    results: &mut Vec<ResultRegister>,
) -> Result<(), Reason> {
    match operand {
        Operand::Vector(parts) => {
            parts.iter().try_for_each(|part| collect(part, function, results))
        }
        Operand::Pair(pair) => pair.iter().try_for_each(|part| collect(part, function, results)),
        _ => {
            let name = operand.as_symbol().ok_or(Reason::Type)?;
            if name == "_" {
                return Ok(());
            }
            let mut registers = function.names.iter().filter(|(_, known)| **known == *name);
            let (register, name) = registers.next().ok_or(Reason::Type)?;
            // The elements of a vector have the same name.
            let width = Width::of(register.kind).filter(|_| registers.next().is_none());
            let width = width.ok_or(Reason::Type)?;
            results.push(ResultRegister { name: name.clone(), register: *register, width });
            Ok(())
        }
    }
}
