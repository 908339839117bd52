//! The registers of an instruction that a hazard is about.

use crate::{Class, Encoding, Inst, Register, RegisterRange, Value};

/// Which registers of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// None: the instruction as such.
    Nothing,
    /// Scalar registers that it writes, implicit ones included.
    ScalarsWritten,
    /// Scalar registers that it reads, implicit ones included.
    ScalarsRead,
    /// Vector registers that it writes.
    VectorsWritten,
    /// Vector registers that it reads, a destination that is also a source included.
    VectorsRead,
    /// Architectural vector registers that it reads.
    VgprsRead,
    /// What it adds to: the third source of matrix and dot operations.
    Addend,
    /// The first two sources of matrix and dot operations.
    Factors,
    /// The data of a store.
    StoredData,
    /// The scalar register that selects a lane.
    LaneSelect,
}

impl Part {
    /// These registers of `inst`.
    pub fn registers(self, inst: &Inst) -> Vec<RegisterRange> {
        let source = |index: usize| inst.sources().nth(index).and_then(|o| register(&o.value));
        let filtered = |ranges: &[RegisterRange], wanted: fn(Register) -> bool| {
            ranges.iter().copied().filter(|range| wanted(range.first)).collect()
        };
        match self {
            Part::Nothing => Vec::new(),
            Part::ScalarsWritten => filtered(&inst.writes, |first| !first.is_per_lane()),
            Part::ScalarsRead => filtered(&inst.reads, |first| !first.is_per_lane()),
            Part::VectorsWritten => filtered(&inst.writes, Register::is_per_lane),
            Part::VectorsRead => filtered(&inst.reads, Register::is_per_lane),
            Part::VgprsRead => filtered(&inst.reads, |first| matches!(first, Register::Vgpr(_))),
            Part::Addend => addend(inst).into_iter().collect(),
            Part::Factors => [source(0), source(1)].into_iter().flatten().collect(),
            Part::StoredData => stored(inst).into_iter().collect(),
            Part::LaneSelect => {
                source(1).filter(|range| !range.first.is_per_lane()).into_iter().collect()
            }
        }
    }
}

fn register(value: &Value) -> Option<RegisterRange> {
    match value {
        Value::Register(range) => Some(*range),
        _ => None,
    }
}

/// The third source, or the destination of operations that add to it.
fn addend(inst: &Inst) -> Option<RegisterRange> {
    let operand = inst.sources().nth(2).or_else(|| inst.destinations().next())?;
    register(&operand.value)
}

/// The data operand of a vector-memory store or atomic.
pub(super) fn stored(inst: &Inst) -> Option<RegisterRange> {
    if inst.class() != Class::Vmem {
        return None;
    }
    let operand = match inst.encoding {
        // Data that is replaced by the old value is the destination.
        Encoding::Mubuf | Encoding::Mtbuf => inst.operands.first(),
        _ => inst.sources().nth(1),
    };
    register(&operand?.value).filter(|range| range.first.is_per_lane())
}
