//! Exactness of each instruction's execution, as the instruction table of the documentation shows
//! it.

use crate::execute::lane::{Accuracy, Numerics};
use crate::execute::operations;
use crate::instruction::{NotExecuted, Op, Run};
use crate::translate::{memory_floats, on_scalars, translate};
use crate::wave::{Level, Machine};
use flipwave_isa::{ConstantType, Inst, Operand, Operation, Register, RegisterRange, Value};
use std::fmt;

/// Exactness of the embedded GPU's execution of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Bit-identical to the ISA's definition.
    Exact,
    /// Within an error. The ISA leaves the bits open; the results are the same on every host.
    Within(Accuracy),
    /// Partly unspecified: no source settles the rest. The text states the choice, which is the
    /// same on every host.
    Unsettled(&'static str),
    /// Refused: ends the dispatch with [`flipwave_device::FaultCause::NotCompute`].
    NotCompute(NotExecuted),
    /// Not executed, because no public source specifies it. The text says what is open.
    Unspecified(&'static str),
    /// Unimplemented, with the reason.
    Gap(&'static str),
}

/// Classifies `inst`, which was decoded for the machine's processor.
pub fn treatment(inst: &Inst, machine: Machine) -> Treatment {
    treatment_of(&translate(inst.clone(), Level::Plain, machine), machine)
}

/// Classifies a translated instruction.
pub(crate) fn treatment_of(op: &Op, machine: Machine) -> Treatment {
    match op.run {
        Run::NotCompute(refused) => Treatment::NotCompute(refused),
        Run::Unspecified(reason) => Treatment::Unspecified(reason),
        Run::Gap(reason) => Treatment::Gap(reason),
        _ => executed(&op.inst, machine),
    }
}

/// Bits of each result word that no source settles.
pub(crate) fn unsettled_bits(op: &Op, machine: Machine) -> u32 {
    let bits = |op: &Op| match treatment_of(op, machine) {
        // Unsettled bits in memory are not tracked.
        _ if op.inst.memory().is_some() => 0,
        Treatment::Unsettled(_) if on_scalars::writes_half(op.inst.operation.name()) => 0xffff_0000,
        Treatment::Unsettled(_) => !0,
        _ => 0,
    };
    op.parts().fold(0, |all, part| all | bits(part))
}

/// Returns `true` if a result is only exact within an error.
pub(crate) fn is_within_error(op: &Op, machine: Machine) -> bool {
    op.parts().any(|part| matches!(treatment_of(part, machine), Treatment::Within(_)))
}

/// Classifies an instruction that is executed.
fn executed(inst: &Inst, machine: Machine) -> Treatment {
    if let Some(done) = unsettled_operand(inst, machine) {
        return Treatment::Unsettled(done);
    }
    if let Some(done) = memory_floats::unsettled(inst, machine) {
        return Treatment::Unsettled(done);
    }
    let name = inst.operation.name();
    if let Some(done) = unsettled_synchronization(name) {
        return Treatment::Unsettled(done);
    }
    match arithmetic(name, machine) {
        Arithmetic { unsettled: Some(done), .. } => Treatment::Unsettled(done),
        Arithmetic { accuracy: Some(accuracy), .. } => Treatment::Within(accuracy),
        _ if on_scalars::writes_half(name) => {
            Treatment::Unsettled("the upper half of the result is zero")
        }
        _ => Treatment::Exact,
    }
}

/// The document or measurement that defines the floating-point results of an exact instruction; `None` if
/// there is none.
pub fn source(inst: &Inst, machine: Machine) -> Option<&'static str> {
    arithmetic(inst.operation.name(), machine).source.or_else(|| memory_floats::source(inst))
}

/// Documented properties of an operation's arithmetic.
#[derive(Default)]
struct Arithmetic {
    unsettled: Option<&'static str>,
    accuracy: Option<Accuracy>,
    source: Option<&'static str>,
}

fn arithmetic(name: &str, machine: Machine) -> Arithmetic {
    if let Some(operation) = operations::find_whole(name, machine) {
        let (unsettled, source) = (operation.unsettled, operation.source);
        return Arithmetic { unsettled, accuracy: None, source };
    }
    let on_scalars = on_scalars::vector_name(name);
    let on_scalars =
        on_scalars.map(|name| Operation::from_mnemonic(&name, machine.generation).name());
    let compare = name.strip_prefix("v_cmpx_").map(|suffix| format!("v_cmp_{suffix}"));
    let row_name = on_scalars.or(compare.as_deref()).unwrap_or(name);
    let Some(row) = operations::find_for(row_name, None, machine) else {
        return Arithmetic::default();
    };
    let Numerics { unsettled, accuracy, source, .. } = row.numerics;
    Arithmetic { unsettled, accuracy, source }
}

/// States the choice for an operation of synchronization that no source settles; `None` for others.
fn unsettled_synchronization(name: &str) -> Option<&'static str> {
    match name {
        "ds_atomic_barrier_arrive_rtn_b64" | "ds_atomic_async_barrier_arrive_b64" => {
            Some("the pending count has 29 bits; arrivals beyond it reload it once")
        }
        _ if name.starts_with("cluster_load_") => {
            Some("workgroups that M0 names and that do not exist are not waited for")
        }
        "s_barrier_leave" => Some("SCC is set if the barrier has no members left"),
        _ => None,
    }
}

/// States the choice for an operand that no source settles; `None` if all operands are settled.
fn unsettled_operand(inst: &Inst, machine: Machine) -> Option<&'static str> {
    // The RDNA manuals do not mention it, and LLVM keeps the register reserved.
    let is_upper = |range: &RegisterRange| match range.first {
        Register::ExecHi => true,
        Register::ExecLo => range.words > 1,
        _ => false,
    };
    let names_upper =
        |operand: &Operand| matches!(&operand.value, Value::Register(range) if is_upper(range));
    if machine.lanes == 32 && inst.operands.iter().any(names_upper) {
        return Some("EXEC_HI is zero in waves of 32 lanes, and not written");
    }
    let modifiers = &inst.modifiers;
    let reads_upper = |(index, operand): (usize, &Operand)| {
        let low = modifiers.op_sel.unwrap_or(0);
        let words = match operand.constant {
            Some(ConstantType::PackedF32) => low | modifiers.op_sel_hi.unwrap_or(u8::MAX),
            // A move reads one word of each source.
            Some(ConstantType::PackedI32) => low,
            _ => 0,
        };
        // Zero has the same bits in both words, whether or not the low word is repeated.
        words >> index & 1 != 0 && operand.constant_bits() != Some(0)
    };
    let reads_upper = inst.sources().enumerate().any(reads_upper);
    reads_upper.then_some("the high word of a constant is zero")
}

impl fmt::Display for Treatment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Treatment::Exact => f.write_str("exact"),
            Treatment::Within(Accuracy { ulps, stated: None }) => write!(f, "within {ulps} ULP"),
            Treatment::Within(Accuracy { ulps, stated: Some(stated) }) => {
                write!(f, "within {ulps} ULP (the manual states {stated})")
            }
            Treatment::Unsettled(done) => write!(f, "not settled: {done}"),
            Treatment::NotCompute(NotExecuted { absence, reason }) => {
                write!(f, "fault `not_compute`, {absence}: {reason}")
            }
            Treatment::Unspecified(reason) => write!(f, "not executed, not settled: {reason}"),
            Treatment::Gap(reason) => write!(f, "missing: {reason}"),
        }
    }
}
