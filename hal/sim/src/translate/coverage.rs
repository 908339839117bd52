//! How instructions are executed: what the book's table of instructions says.

use crate::execute::lane::Accuracy;
use crate::execute::operations;
use crate::instruction::Run;
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
    /// As far as the ISA defines it; this is not settled by what is published.
    Unsettled(&'static str),
    /// Not: it ends the dispatch with [`flipwave_device::FaultCause::NotCompute`], for this
    /// reason.
    NotCompute(&'static str),
    /// Not yet: a gap, for this reason.
    Gap(&'static str),
}

/// How the embedded GPU executes `inst`, which is decoded for the machine's processor.
pub fn treatment(inst: &Inst, machine: Machine) -> Treatment {
    match translate(inst.clone(), Level::Plain, machine).run {
        Run::NotCompute(reason) => Treatment::NotCompute(reason),
        Run::Gap(reason) => Treatment::Gap(reason),
        _ => {
            let name = inst.operation.name();
            let vector = on_scalars::vector_name(name);
            let numerics = operations::numerics(vector.as_deref().unwrap_or(name));
            let accuracy = numerics.and_then(|numerics| numerics.accuracy);
            let unsettled = operations::unsettled(name, machine.generation);
            match (accuracy, unsettled) {
                (Some(accuracy), _) => Treatment::Within(accuracy),
                (None, Some(what)) => Treatment::Unsettled(what),
                (None, None) => Treatment::Exact,
            }
        }
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
            Treatment::Unsettled(what) => write!(f, "exact but for what is not published: {what}"),
            Treatment::NotCompute(reason) => write!(f, "fault `not_compute`: {reason}"),
            Treatment::Gap(reason) => write!(f, "missing: {reason}"),
        }
    }
}
