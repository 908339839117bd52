//! Registers of an instruction.

use super::Slots;
use crate::wave::Machine;
use flipwave_isa::{Half, Inst, Operand, RegisterRange, Value};

/// Registers that an instruction reads and writes, explicitly or implicitly.
#[derive(Debug)]
pub struct Named {
    /// Registers read.
    pub reads: Vec<(RegisterRange, Slots)>,
    /// Registers written.
    pub writes: Vec<(RegisterRange, Slots)>,
}

impl Named {
    /// Registers of an instruction on a machine.
    pub fn of(inst: &Inst, machine: Machine) -> Named {
        let slots = |ranges: &[RegisterRange], half: fn(&Inst, RegisterRange) -> Option<Half>| {
            let slots = |range| Some((range, Slots::of(range, machine)?.half(half(inst, range))));
            ranges.iter().copied().filter_map(slots).collect()
        };
        Named { reads: slots(&inst.reads, half_read), writes: slots(&inst.writes, half_written) }
    }
}

/// Half of a register that an instruction reads, if it does not read all of it.
fn half_read(inst: &Inst, range: RegisterRange) -> Option<Half> {
    // A register that is read without being a source is accumulated into, or half of it is kept: no
    // more is read than is written.
    half_of(inst.sources(), range).unwrap_or_else(|| half_written(inst, range))
}

/// Half of a register that an instruction writes, if it does not write all of it.
fn half_written(inst: &Inst, range: RegisterRange) -> Option<Half> {
    half_of(inst.destinations(), range).flatten()
}

/// Half of a register that operands name: `Some(None)` if they name all of it, `None` if they do
/// not name it.
fn half_of<'a>(
    operands: impl Iterator<Item = &'a Operand>,
    range: RegisterRange,
) -> Option<Option<Half>> {
    let halves = operands
        .filter(|operand| operand.value == Value::Register(range))
        .map(|operand| operand.half);
    halves.reduce(|half, other| if half == other { half } else { None })
}
