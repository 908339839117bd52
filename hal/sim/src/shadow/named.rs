//! The registers that an instruction names.

use super::Slots;
use crate::wave::Machine;
use flipwave_isa::{Half, Inst, Operand, RegisterRange, Value};

/// The registers that an instruction names, and those that it reads and writes without naming them.
#[derive(Debug)]
pub struct Named {
    /// Those it reads.
    pub reads: Vec<(RegisterRange, Slots)>,
    /// Those it writes.
    pub writes: Vec<(RegisterRange, Slots)>,
}

impl Named {
    /// Those of an instruction that a machine executes.
    pub fn of(inst: &Inst, machine: Machine) -> Named {
        let slots = |ranges: &[RegisterRange], half: fn(&Inst, RegisterRange) -> Option<Half>| {
            let slots = |range| Some((range, Slots::of(range, machine)?.half(half(inst, range))));
            ranges.iter().copied().filter_map(slots).collect()
        };
        Named { reads: slots(&inst.reads, half_read), writes: slots(&inst.writes, half_written) }
    }
}

/// The half of a register that an instruction reads, if it is not all of it.
fn half_read(inst: &Inst, range: RegisterRange) -> Option<Half> {
    // What is read without being a source is what the result replaces a half of, or is added to: no
    // more than is written.
    half_of(inst.sources(), range).unwrap_or_else(|| half_written(inst, range))
}

/// The half of a register that an instruction writes, if it is not all of it.
fn half_written(inst: &Inst, range: RegisterRange) -> Option<Half> {
    half_of(inst.destinations(), range).flatten()
}

/// The half of a register that operands name, if they do not name all of it; nothing where they do not
/// name the register.
fn half_of<'a>(
    operands: impl Iterator<Item = &'a Operand>,
    range: RegisterRange,
) -> Option<Option<Half>> {
    let halves = operands.filter(|own| own.value == Value::Register(range)).map(|own| own.half);
    halves.reduce(|half, other| if half == other { half } else { None })
}
