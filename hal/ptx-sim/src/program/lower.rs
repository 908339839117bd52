//! Instructions prepared for execution.

use super::operand::{Addresses, Destination, Source, destination, elements, source};
use super::{MatrixProduct, Op, control, memory, phase_barrier, warpgroup};
use crate::Gap;
use crate::compute::{Operation, exactness, operation, repack};
use flipwave_machine::Exactness;
use flipwave_ptx::{Argument, Class, Code, ControlFlow, Form, Inst, MatrixForm, ScalarType};
use std::ops::RangeInclusive;

/// Prepares an instruction.
pub(super) fn lower(
    inst: &Inst,
    number: usize,
    code: &Code,
    flow: &ControlFlow,
    addresses: &dyn Addresses,
) -> Result<Op, Gap> {
    let class = inst.form.class().ok_or_else(|| Gap::because("unknown opcode"))?;
    match class {
        Class::Load if inst.form.opcode() == "ld" || inst.form.opcode() == "ldu" => {
            memory::load(inst, code, addresses)
        }
        Class::Store if inst.form.opcode() == "st" => memory::store(inst, code, addresses),
        Class::Atomic | Class::Reduction if inst.form.opcode() != "multimem" => {
            memory::atomic(inst, code, addresses)
        }
        Class::Copy if inst.form.opcode() == "cp" => memory::copy(inst, code, addresses),
        Class::Cache => Ok(Op::Nothing),
        Class::Control => control::control(inst, number, flow, addresses),
        Class::Call => control::call(inst, code, addresses),
        Class::Synchronization if inst.form.opcode() == "mbarrier" => {
            phase_barrier::phase_barrier(inst, code, addresses)
        }
        Class::Synchronization => control::synchronization(inst, addresses),
        Class::Event if inst.form.opcode() == "brkpt" => {
            control::control(inst, number, flow, addresses)
        }
        Class::Event => Ok(Op::Nothing),
        Class::Matrix if matches!(inst.form.opcode(), "ldmatrix" | "stmatrix") => {
            memory::matrix(inst, code, addresses)
        }
        Class::Matrix if inst.form.opcode() == "mma" => product(inst, addresses),
        Class::Matrix if inst.form.opcode() == "wgmma" => {
            warpgroup::product(inst, addresses).map(Op::Warpgroup)
        }
        Class::Move if inst.form.opcode() == "mov" => moved(inst, addresses),
        Class::Arithmetic
        | Class::Logic
        | Class::Move
        | Class::Convert
        | Class::Compare
        | Class::Lanes => compute(inst, addresses),
        _ => Err(Gap::form()),
    }
}

/// The type of an operand, which decides the bits of constants.
fn operand_type(form: &Form, number: usize) -> ScalarType {
    let (result, source) = (form.result(), form.source());
    let kind = match form.opcode() {
        // The third operand of a product with twice as many bits.
        "mad" if form.has("wide") && number == 2 => match result {
            Some(ScalarType::U16 | ScalarType::S16) => Some(ScalarType::B32),
            _ => Some(ScalarType::B64),
        },
        "setp" | "set" | "cvt" | "testp" => source,
        "slct" if number == 2 => source,
        "slct" => result,
        "fma" | "add" | "sub" if form.types.len() == 2 && number == 2 => result,
        "add" | "sub" if form.types.len() == 2 && number == 1 => result,
        "fma" | "add" | "sub" => source,
        // Amounts of shifts, positions and lengths.
        "shl" | "shr" if number == 1 => Some(ScalarType::B32),
        "bfe" | "bfi" | "szext" if number >= 1 && !(form.opcode() == "bfi" && number == 1) => {
            Some(ScalarType::B32)
        }
        "shfl" | "vote" | "match" | "redux" | "elect" if number >= 1 => Some(ScalarType::B32),
        "vote" => Some(ScalarType::Pred),
        "isspacep" | "cvta" | "mapa" => Some(ScalarType::B64),
        _ => result,
    };
    kind.unwrap_or(ScalarType::B32)
}

/// Numbers of sources that an operation has.
fn source_counts(opcode: &str) -> RangeInclusive<usize> {
    match opcode {
        "add" | "sub" | "addc" | "subc" | "mul" | "mul24" | "div" | "rem" | "min" | "max"
        | "and" | "or" | "xor" | "shl" | "shr" | "copysign" | "bmsk" | "szext" => 2..=2,
        "mad" | "madc" | "mad24" | "fma" | "sad" | "dp4a" | "dp2a" | "prmt" | "shf" | "bfe"
        | "selp" | "slct" | "fns" => 3..=3,
        "bfi" => 4..=4,
        "lop3" => 4..=5,
        "set" | "setp" => 2..=3,
        "cvt" => 1..=3,
        "shfl" => 3..=4,
        "vote" | "match" | "redux" | "mapa" => 1..=2,
        "activemask" => 0..=0,
        "elect" => 0..=1,
        "createpolicy" => 0..=4,
        _ => 1..=1,
    }
}

/// Operations whose operands are values of lanes.
fn compute(inst: &Inst, addresses: &dyn Addresses) -> Result<Op, Gap> {
    let form = &inst.form;
    let operation = operation(form)?;
    let [results, operands @ ..] = &inst.operands[..] else { return Err(Gap::form()) };
    if !source_counts(form.opcode()).contains(&operands.len()) {
        return Err(Gap::because("another number of operands was expected"));
    }
    let mut destinations = match results {
        Argument::Pair(pair) => vec![destination(&pair[0])?, destination(&pair[1])?],
        other => vec![destination(other)?],
    };
    let mut sources = Vec::new();
    for (number, operand) in operands.iter().enumerate() {
        sources.push(source(operand, operand_type(form, number), addresses)?);
    }
    if form.has("cc") {
        destinations.push(Destination::Carry);
    }
    if matches!(form.opcode(), "addc" | "subc" | "madc") {
        sources.push(Source::Carry);
    }
    Ok(Op::Compute { operation, sources, destinations })
}

/// Moves, which may split a value or join several.
fn moved(inst: &Inst, addresses: &dyn Addresses) -> Result<Op, Gap> {
    let [result, operand] = &inst.operands[..] else { return Err(Gap::form()) };
    let kind = inst.form.result().ok_or_else(Gap::form)?;
    let (results, operands) = (elements(result), elements(operand));
    if results.len() == 1 && operands.len() == 1 {
        return compute(inst, addresses);
    }
    let share = |count: usize| kind.bits() / count as u32;
    let typed = |count: usize| match share(count) {
        8 => Ok(ScalarType::B8),
        16 => Ok(ScalarType::B16),
        32 => Ok(ScalarType::B32),
        64 => Ok(ScalarType::B64),
        _ => Err(Gap::form()),
    };
    let element = typed(operands.len())?;
    typed(results.len())?;
    let sources = operands.iter().map(|operand| source(operand, element, addresses));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let destinations = results.iter().map(destination).collect::<Result<Vec<_>, _>>()?;
    let sizes = |count: usize| vec![share(count); count];
    let compute = repack(sizes(sources.len()), sizes(destinations.len()));
    let operation = Operation { compute, exactness: Exactness::Exact };
    Ok(Op::Compute { operation, sources, destinations })
}

/// Matrix products of registers.
fn product(inst: &Inst, addresses: &dyn Addresses) -> Result<Op, Gap> {
    let [d, a, b, c] = &inst.operands[..] else { return Err(Gap::form()) };
    let [d, a, b, c] = [d, a, b, c].map(elements);
    let form = MatrixForm::of(&inst.form).ok_or_else(Gap::form)?;
    if form.registers() != [&d, &a, &b, &c].map(Vec::len) {
        return Err(Gap::because("another number of registers was expected"));
    }
    let kind = if inst.form.has("f64") { ScalarType::F64 } else { ScalarType::B32 };
    let sources = a.iter().chain(&b).chain(&c).map(|part| source(part, kind, addresses));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let destinations = d.iter().map(destination).collect::<Result<Vec<_>, _>>()?;
    Ok(Op::Product(MatrixProduct { form, sources, destinations, exactness: exactness(&form) }))
}
