//! The registers of an instruction that a hazard is about.

use crate::{Class, Encoding, Family, Inst, Register, RegisterRange, Value};

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
    /// Scalar registers that it names as sources, and VCC if it reads it.
    ScalarSources,
    /// Scalar registers that it names as destinations.
    ScalarDestinations,
    /// Vector registers that it reads, a destination that is also a source included, but not one
    /// of which it merely keeps a part: LLVM does not count that as a read.
    VectorsRead,
    /// Architectural vector registers that it reads.
    VgprsRead,
    /// What it adds to: the third source of matrix and dot operations.
    Addend,
    /// The first two sources of matrix and dot operations, and the index of sparse ones.
    Factors,
    /// The data of a store.
    StoredData,
    /// The scalar register that selects a lane.
    LaneSelect,
    /// The scalar registers that say which lanes an operation carries into or selects in.
    Mask,
}

impl Part {
    /// Whether they are vector registers.
    pub(crate) fn is_of_vectors(self) -> bool {
        match self {
            Part::VectorsWritten
            | Part::VectorsRead
            | Part::VgprsRead
            | Part::Addend
            | Part::Factors
            | Part::StoredData => true,
            Part::Nothing
            | Part::ScalarsWritten
            | Part::ScalarsRead
            | Part::ScalarSources
            | Part::ScalarDestinations
            | Part::LaneSelect
            | Part::Mask => false,
        }
    }

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
            Part::ScalarSources => {
                let named = |range: &RegisterRange| {
                    range.first == Register::VccLo
                        || inst.sources().any(|own| register(&own.value) == Some(*range))
                };
                let read = inst.reads.iter().copied().filter(named);
                read.filter(|range| !range.first.is_per_lane()).collect()
            }
            Part::ScalarDestinations => {
                let named = inst.destinations().filter_map(|own| register(&own.value));
                named.filter(|range| !range.first.is_per_lane()).collect()
            }
            Part::VectorsRead => vectors_read(inst, Register::is_per_lane),
            Part::VgprsRead => vectors_read(inst, |first| matches!(first, Register::Vgpr(_))),
            Part::Addend => addend(inst).into_iter().collect(),
            Part::Factors => {
                let index = source(2).filter(|_| is_sparse(inst));
                [source(0), source(1), index].into_iter().flatten().collect()
            }
            Part::StoredData => stored(inst).into_iter().collect(),
            Part::LaneSelect => {
                source(1).filter(|range| !range.first.is_per_lane()).into_iter().collect()
            }
            Part::Mask => {
                let is_named = |range: &RegisterRange| {
                    inst.sources().any(|own| register(&own.value) == Some(*range))
                };
                let is_mask = |range: &RegisterRange| {
                    range.first == Register::VccLo && !is_named(range) || source(2) == Some(*range)
                };
                let read = inst.reads.iter().copied().filter(|range| !range.first.is_per_lane());
                read.filter(is_mask).collect()
            }
        }
    }
}

fn vectors_read(inst: &Inst, wanted: fn(Register) -> bool) -> Vec<RegisterRange> {
    let is_source = |range: &RegisterRange| {
        let named = |own: &crate::Operand| register(&own.value) == Some(*range);
        inst.flags.tied || inst.sources().any(named) || !inst.destinations().any(named)
    };
    let read = inst.reads.iter().copied().filter(is_source);
    read.filter(|range| wanted(range.first)).collect()
}

pub(super) fn register(value: &Value) -> Option<RegisterRange> {
    match value {
        Value::Register(range) => Some(*range),
        _ => None,
    }
}

fn is_sparse(inst: &Inst) -> bool {
    inst.operation.is(Family::SparseMfma) || inst.operation.is(Family::SparseWmma)
}

/// The third source, or the destination of operations that add to it.
fn addend(inst: &Inst) -> Option<RegisterRange> {
    let third = inst.sources().nth(2).filter(|_| !is_sparse(inst));
    let operand = third.or_else(|| inst.destinations().next())?;
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
