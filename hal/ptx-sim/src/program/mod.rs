//! Code prepared for execution.

mod atomic;
mod blocks;
mod control;
mod load;
mod lower;
mod memory;
mod op;
mod operand;
mod original;
mod phase_barrier;
mod warpgroup;

pub(crate) use atomic::{AtomicOperation, AtomicValue};
pub(crate) use blocks::{Block, Blocks};
pub(crate) use control::{BarrierCount, BarrierKind, BarrierOp, CallOp, CallTarget, Place};
pub(crate) use load::Base;
pub(crate) use memory::{AsyncCopy, MatrixLoad, MemoryAccess, MemorySpace, MemoryValue};
pub(crate) use op::{MatrixProduct, Op, Step};
pub(crate) use operand::{Destination, Source, register_destination, register_source};
pub use original::Inserted;
pub(crate) use original::Original;
pub(crate) use phase_barrier::{Phase, PhaseBarrier, PhaseKind};
pub(crate) use warpgroup::{Descriptor, SharedMatrix, WarpgroupLeft, WarpgroupProduct};

use crate::Gap;
use crate::wave::RegisterRange;
use flipwave_arch::Pc;
use flipwave_device::Address;
use flipwave_machine::Exactness;
use flipwave_ptx::{CallGraph, Code, Inst, Module, Origin, Space};
use std::sync::Arc;

/// A loaded module.
pub struct Program {
    /// The module.
    pub module: Arc<Module>,
    /// The code.
    pub code: Arc<Code>,
    /// The instructions with their effects, in the order of the code.
    pub(crate) steps: Vec<Step>,
    /// Bytes of shared memory that the module declares.
    pub(crate) shared_bytes: u64,
    /// Calls between functions.
    pub(crate) calls: CallGraph,
    /// By function: registers of the functions that a call of it may reach.
    pub(crate) ranges: Vec<RegisterRange>,
    /// The blocks that are compiled.
    pub(crate) blocks: Blocks,
    /// Addresses of variables in their state spaces, in the order of the code.
    pub(crate) variables: Vec<u64>,
    /// Addresses of functions, in the order of the code.
    pub(crate) functions: Vec<u64>,
    /// For rewritten code: the code that it replaces.
    pub(crate) original: Option<Original>,
}

impl Program {
    /// Origin of the instruction at an address; `None` for code that is not rewritten, and outside the code.
    pub(crate) fn origin(&self, pc: u64) -> Option<Origin> {
        let original = self.original.as_ref()?;
        original.origins.get(self.code.number_of(Pc(pc))?).copied()
    }

    /// Returns `true` if instructions of this origin are executed without being counted.
    pub(crate) fn is_free(&self, origin: Option<Origin>) -> bool {
        let is_inserted = origin.is_some_and(Origin::is_inserted);
        is_inserted && self.original.as_ref().is_some_and(|found| found.inserted == Inserted::Free)
    }

    /// Returns `true` if the turn of a wave does not end before the instruction at an address. Turns end at the
    /// blocks of the original code; what was inserted after an instruction belongs to its turn.
    pub(crate) fn continues_turn(&self, pc: u64) -> bool {
        let Some(number) = self.code.number_of(Pc(pc)) else { return false };
        let original = self.original.as_ref().filter(|found| found.inserted == Inserted::Free);
        match original {
            Some(original) => original.continues_turn(number),
            None => self.blocks.is_inside(number),
        }
    }

    /// The instruction with a number as observers see it: that of the original code.
    pub(crate) fn seen(&self, number: usize) -> &Inst {
        let original = self.original.as_ref().and_then(|original| original.inst(number));
        original.unwrap_or(&self.steps[number].inst)
    }

    /// Address in shared memory of the first byte that a launch provides.
    pub fn dynamic_shared(&self) -> u64 {
        self.shared_bytes.next_multiple_of(16)
    }

    /// Address and size in bytes of a variable in global or constant memory.
    pub fn variable(&self, name: &str) -> Option<(Address, u64)> {
        self.variables()
            .find(|(found, ..)| *found == name)
            .map(|(_, address, bytes)| (address, bytes))
    }

    /// Names, addresses and sizes in bytes of the variables in global and constant memory.
    pub fn variables(&self) -> impl Iterator<Item = (&str, Address, u64)> {
        let all = self.code.variables.iter().zip(&self.variables);
        all.filter(|(variable, _)| variable.space != Space::Shared)
            .map(|(variable, address)| (&*variable.name, Address(*address), variable.bytes))
    }

    /// Address in its state space of the variable with a number.
    pub fn variable_address(&self, number: usize) -> Option<u64> {
        self.variables.get(number).copied()
    }

    /// Bytes of shared memory that the module declares.
    pub fn shared_bytes(&self) -> u64 {
        self.shared_bytes
    }

    /// The gaps of the module: instructions that are not implemented, with the reason.
    pub fn gaps(&self) -> impl Iterator<Item = (&Inst, &Gap)> {
        self.steps.iter().filter_map(|step| match &step.op {
            Op::Gap(gap) => Some((&step.inst, gap)),
            _ => None,
        })
    }

    /// Exactness of the instruction with a number.
    pub(crate) fn exactness(&self, number: usize) -> &Exactness {
        match &self.steps[number].op {
            Op::Compute { operation, .. } => &operation.exactness,
            Op::Product(product) => &product.exactness,
            Op::Warpgroup(product) => &product.exactness,
            _ => &Exactness::Exact,
        }
    }
}
