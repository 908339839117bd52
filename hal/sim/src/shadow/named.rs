//! The registers that an instruction names.

use super::Slots;
use crate::wave::Machine;
use flipwave_isa::{Inst, RegisterRange};

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
        let slots = |ranges: &[RegisterRange]| {
            ranges.iter().filter_map(|range| Some((*range, Slots::of(*range, machine)?))).collect()
        };
        Named { reads: slots(&inst.reads), writes: slots(&inst.writes) }
    }
}
