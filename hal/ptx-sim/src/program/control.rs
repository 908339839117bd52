//! Branches, calls and barriers.

use super::Op;
use super::operand::{Addresses, Destination, Source, register_destination, source};
use crate::Gap;
use flipwave_ptx::{Argument, Code, ControlFlow, Inst, ScalarType, Symbol, pc_of};

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallOp {
    /// The called function.
    pub target: CallTarget,
    /// Places of the arguments.
    pub arguments: Vec<Place>,
    /// Places of the results.
    pub results: Vec<Place>,
}

/// The function that a call reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallTarget {
    /// A function, by number.
    Function(usize),
    /// A function, by address.
    Address(Source),
}

/// A place of an argument or a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A value in a register, or a constant.
    Value(Source),
    /// A register that is written.
    Register(Destination),
    /// Bytes in the frame.
    Frame(u64),
}

/// A barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BarrierOp {
    /// Number of the barrier.
    pub number: Source,
    /// Number of participating threads.
    pub count: BarrierCount,
    /// Kind of the instruction.
    pub kind: BarrierKind,
}

/// Number of threads that a barrier waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierCount {
    /// All threads of the workgroup.
    All,
    /// The number in an operand.
    Threads(Source),
}

/// Kinds of barrier instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierKind {
    /// Arrives and waits.
    Sync,
    /// Arrives without waiting.
    Arrive,
    /// Arrives, waits, and counts lanes whose predicate is true.
    Count(Source, Destination),
    /// Arrives, waits, and returns whether the predicate of all lanes is true.
    All(Source, Destination),
    /// Arrives, waits, and returns whether the predicate of a lane is true.
    Any(Source, Destination),
}

/// Branches, returns and traps.
pub(super) fn control(
    inst: &Inst,
    number: usize,
    flow: &ControlFlow,
    addresses: &dyn Addresses,
) -> Result<Op, Gap> {
    let meeting = flow.reconvergence(number).map(|number| pc_of(number).0);
    match (inst.form.opcode(), &inst.operands[..]) {
        ("bra", [Argument::Label(target)]) => Ok(Op::Branch { target: target.0, meeting }),
        ("brx", [index, Argument::Targets(targets)]) => Ok(Op::IndexedBranch {
            index: source(index, ScalarType::U32, addresses)?,
            targets: targets.iter().map(|target| target.0).collect(),
            meeting,
        }),
        ("ret", []) => Ok(Op::Return),
        ("exit", []) => Ok(Op::Exit),
        // The numbers of the faults are those of AMD's ABI: 2 aborts, 3 is a breakpoint.
        ("trap", []) => Ok(Op::Trap(2)),
        ("brkpt", []) => Ok(Op::Trap(3)),
        _ => Err(Gap::form()),
    }
}

/// Calls: `call (results), function, (arguments), targets`, with lists where they are not empty.
pub(super) fn call(inst: &Inst, code: &Code, addresses: &dyn Addresses) -> Result<Op, Gap> {
    let (results, rest) = match &inst.operands[..] {
        [Argument::List(results), rest @ ..] => (&results[..], rest),
        rest => (&[][..], rest),
    };
    let [function, rest @ ..] = rest else { return Err(Gap::form()) };
    let arguments = match rest.first() {
        Some(Argument::List(arguments)) => &arguments[..],
        _ => &[],
    };
    let target = match function {
        Argument::Symbol(Symbol::Function(number), _) => CallTarget::Function(*number),
        Argument::Symbol(Symbol::External(name), _) => {
            return Err(Gap::because(&format!("function `{name}` has no code in the module")));
        }
        Argument::Register(_) => CallTarget::Address(source(function, ScalarType::B64, addresses)?),
        _ => return Err(Gap::form()),
    };
    if let CallTarget::Function(number) = target {
        let callee = &code.functions[number];
        if callee.parameters.len() != arguments.len() || callee.results.len() != results.len() {
            return Err(Gap::because("the number of parameters differs from the function's"));
        }
    }
    let argument = |argument: &Argument| match argument {
        Argument::Frame(offset) => Ok(Place::Frame(*offset)),
        other => source(other, ScalarType::B64, addresses).map(Place::Value),
    };
    let result = |result: &Argument| match result {
        Argument::Frame(offset) => Ok(Place::Frame(*offset)),
        Argument::Register(register) => Ok(Place::Register(register_destination(*register))),
        Argument::Sink => Ok(Place::Register(Destination::Sink)),
        _ => Err(Gap::form()),
    };
    Ok(Op::Call(CallOp {
        target,
        arguments: arguments.iter().map(argument).collect::<Result<_, _>>()?,
        results: results.iter().map(result).collect::<Result<_, _>>()?,
    }))
}

/// Barriers and fences.
pub(super) fn synchronization(inst: &Inst, addresses: &dyn Addresses) -> Result<Op, Gap> {
    let form = &inst.form;
    match form.opcode() {
        "membar" | "fence" | "nanosleep" | "griddepcontrol" => return Ok(Op::Nothing),
        // `mma_async` is complete before the next instruction.
        "wgmma" => return Ok(Op::Nothing),
        "bar" | "barrier" if form.has("warp") => return Ok(Op::Nothing),
        // A cluster has one workgroup.
        "barrier" if form.has("cluster") => return Ok(Op::Nothing),
        "bar" | "barrier" => {}
        _ => return Err(Gap::form()),
    }
    let operand = |argument: &Argument| source(argument, ScalarType::U32, addresses);
    let predicate = |argument: &Argument| source(argument, ScalarType::Pred, addresses);
    if form.has("red") {
        let (result, number, count, value) = match &inst.operands[..] {
            [result, number, value] => (result, number, BarrierCount::All, value),
            [result, number, count, value] => {
                (result, number, BarrierCount::Threads(operand(count)?), value)
            }
            _ => return Err(Gap::form()),
        };
        let (value, result) = (predicate(value)?, super::operand::destination(result)?);
        let kind = match form {
            _ if form.has("popc") => BarrierKind::Count(value, result),
            _ if form.has("and") => BarrierKind::All(value, result),
            _ if form.has("or") => BarrierKind::Any(value, result),
            _ => return Err(Gap::form()),
        };
        return Ok(Op::Barrier(BarrierOp { number: operand(number)?, count, kind }));
    }
    let kind = if form.has("arrive") { BarrierKind::Arrive } else { BarrierKind::Sync };
    let (number, count) = match &inst.operands[..] {
        [number] => (operand(number)?, BarrierCount::All),
        [number, count] => (operand(number)?, BarrierCount::Threads(operand(count)?)),
        _ => return Err(Gap::form()),
    };
    Ok(Op::Barrier(BarrierOp { number, count, kind }))
}
