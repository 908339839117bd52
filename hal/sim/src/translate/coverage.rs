//! How instructions are executed: what the book's table of instructions says.

use crate::execute::lane::{Accuracy, Numerics};
use crate::execute::operations;
use crate::instruction::{Op, Run};
use crate::translate::{on_scalars, translate};
use crate::wave::{Level, Machine};
use flipwave_isa::Inst;
use std::fmt;

/// How the embedded GPU executes an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// As the ISA defines it, to the bit.
    Exact,
    /// With an error. The ISA leaves the bits open; these are the same on every host.
    Within(Accuracy),
    /// As far as it is known. No source settles the rest; what is done there is said, and is the same
    /// on every host.
    Unsettled(&'static str),
    /// Not: it ends the dispatch with [`flipwave_device::FaultCause::NotCompute`], for this
    /// reason.
    NotCompute(&'static str),
    /// Not yet: a gap, for this reason.
    Gap(&'static str),
}

/// How the embedded GPU executes `inst`, which is decoded for the machine's processor.
pub fn treatment(inst: &Inst, machine: Machine) -> Treatment {
    treatment_of(&translate(inst.clone(), Level::Plain, machine), machine)
}

/// How the embedded GPU executes an instruction that is ready for it.
pub(crate) fn treatment_of(op: &Op, machine: Machine) -> Treatment {
    match op.run {
        Run::NotCompute(reason) => Treatment::NotCompute(reason),
        Run::Gap(reason) => Treatment::Gap(reason),
        _ => executed(&op.inst, machine),
    }
}

/// Bits of each word of the results of an instruction that are not settled.
pub(crate) fn unsettled_bits(op: &Op, machine: Machine) -> u32 {
    let bits = |op: &Op| match treatment_of(op, machine) {
        Treatment::Unsettled(_) if on_scalars::writes_half(op.inst.operation.name()) => 0xffff_0000,
        Treatment::Unsettled(_) => !0,
        _ => 0,
    };
    op.parts().fold(0, |all, own| all | bits(own))
}

/// How exact what is executed is.
fn executed(inst: &Inst, machine: Machine) -> Treatment {
    let name = inst.operation.name();
    if let Some(operation) = operations::find_whole(name, machine) {
        return operation.unsettled.map_or(Treatment::Exact, Treatment::Unsettled);
    }
    let on_scalars = on_scalars::vector_name(name);
    let row = operations::find_for(on_scalars.as_deref().unwrap_or(name), machine);
    match row.map(|row| row.numerics) {
        Some(Numerics { unsettled: Some(done), .. }) => Treatment::Unsettled(done),
        Some(Numerics { accuracy: Some(accuracy), .. }) => Treatment::Within(accuracy),
        _ if on_scalars::writes_half(name) => {
            Treatment::Unsettled("the upper half of the result is zero")
        }
        _ => Treatment::Exact,
    }
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
            Treatment::NotCompute(reason) => write!(f, "fault `not_compute`: {reason}"),
            Treatment::Gap(reason) => write!(f, "missing: {reason}"),
        }
    }
}
