//! Registers of an instruction that a hazard involves.

use crate::{Class, Encoding, Family, Inst, Operand, Register, RegisterRange, Value};

/// Selects the registers of an instruction that a hazard involves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registers {
    /// No registers: the hazard involves the instruction as such.
    None,
    /// Scalar registers written, including implicit ones.
    ScalarsWritten,
    /// Scalar registers read, including implicit ones.
    ScalarsRead,
    /// Vector registers written.
    VectorsWritten,
    /// Scalar registers named as sources, and VCC if it is read.
    ScalarSources,
    /// Scalar registers named as destinations.
    ScalarDestinations,
    /// Vector registers read, including a destination that is also a source. Excludes destinations that are
    /// only partly preserved, which LLVM does not treat as reads.
    VectorsRead,
    /// Architectural vector registers read.
    VgprsRead,
    /// The accumulator of matrix and dot operations: the third source.
    SrcC,
    /// The first two sources of matrix and dot operations, and the index of sparse ones.
    SrcAB,
    /// The data of a store.
    StoredData,
    /// The scalar register that selects a lane.
    LaneSelect,
    /// The scalar registers that hold the carry-in or select mask of an operation.
    LaneMask,
}

impl Registers {
    /// Returns `true` if the selected registers are vector registers.
    pub(crate) fn are_vectors(self) -> bool {
        match self {
            Registers::VectorsWritten
            | Registers::VectorsRead
            | Registers::VgprsRead
            | Registers::SrcC
            | Registers::SrcAB
            | Registers::StoredData => true,
            Registers::None
            | Registers::ScalarsWritten
            | Registers::ScalarsRead
            | Registers::ScalarSources
            | Registers::ScalarDestinations
            | Registers::LaneSelect
            | Registers::LaneMask => false,
        }
    }

    /// The selected registers of `inst`.
    pub fn select(self, inst: &Inst) -> Vec<RegisterRange> {
        let source = |index: usize| inst.sources().nth(index).and_then(operand_register);
        let is_source = |range: &RegisterRange| {
            inst.sources().any(|operand| operand_register(operand) == Some(*range))
        };
        let filtered = |ranges: &[RegisterRange], wanted: fn(Register) -> bool| {
            ranges.iter().copied().filter(|range| wanted(range.first)).collect()
        };
        match self {
            Registers::None => Vec::new(),
            Registers::ScalarsWritten => filtered(&inst.writes, |first| !first.is_per_lane()),
            Registers::ScalarsRead => filtered(&inst.reads, |first| !first.is_per_lane()),
            Registers::VectorsWritten => filtered(&inst.writes, Register::is_per_lane),
            Registers::ScalarSources => {
                let is_selected =
                    |range: &RegisterRange| range.first == Register::VccLo || is_source(range);
                let read = inst.reads.iter().copied().filter(is_selected);
                read.filter(|range| !range.first.is_per_lane()).collect()
            }
            Registers::ScalarDestinations => {
                let named = inst.destinations().filter_map(operand_register);
                named.filter(|range| !range.first.is_per_lane()).collect()
            }
            Registers::VectorsRead => vectors_read(inst, Register::is_per_lane),
            Registers::VgprsRead => vectors_read(inst, |first| matches!(first, Register::Vgpr(_))),
            Registers::SrcC => src_c(inst).into_iter().collect(),
            Registers::SrcAB => {
                let index = source(2).filter(|_| is_sparse(inst));
                [source(0), source(1), index].into_iter().flatten().collect()
            }
            Registers::StoredData => stored(inst).into_iter().collect(),
            Registers::LaneSelect => {
                source(1).filter(|range| !range.first.is_per_lane()).into_iter().collect()
            }
            Registers::LaneMask => {
                let is_mask = |range: &RegisterRange| {
                    range.first == Register::VccLo && !is_source(range) || source(2) == Some(*range)
                };
                let read = inst.reads.iter().copied().filter(|range| !range.first.is_per_lane());
                read.filter(is_mask).collect()
            }
        }
    }
}

fn vectors_read(inst: &Inst, wanted: fn(Register) -> bool) -> Vec<RegisterRange> {
    let is_read = |range: &RegisterRange| {
        let is_named = |operand: &Operand| operand_register(operand) == Some(*range);
        inst.flags.tied || inst.sources().any(is_named) || !inst.destinations().any(is_named)
    };
    let read = inst.reads.iter().copied().filter(is_read);
    read.filter(|range| wanted(range.first)).collect()
}

pub(super) fn register(value: &Value) -> Option<RegisterRange> {
    match value {
        Value::Register(range) => Some(*range),
        _ => None,
    }
}

fn operand_register(operand: &Operand) -> Option<RegisterRange> {
    register(&operand.value)
}

fn is_sparse(inst: &Inst) -> bool {
    inst.operation.is(Family::SparseMfma) || inst.operation.is(Family::SparseWmma)
}

/// The third source, or the destination of operations that accumulate into it.
fn src_c(inst: &Inst) -> Option<RegisterRange> {
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
        // Buffer atomics that return the old value have their data in the destination.
        Encoding::Mubuf | Encoding::Mtbuf => inst.operands.first(),
        _ => inst.sources().nth(1),
    };
    register(&operand?.value).filter(|range| range.first.is_per_lane())
}
