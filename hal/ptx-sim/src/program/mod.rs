//! Code prepared for execution.

mod atomic;
mod control;
mod load;
mod lower;
mod memory;
mod operand;
mod phase_barrier;

pub(crate) use atomic::AtomicOperation;
pub(crate) use control::{BarrierCount, BarrierKind, BarrierOp, CallOp, CallTarget, Place};
pub(crate) use memory::{AsyncCopy, MatrixLoad, MemoryAccess, MemorySpace, MemoryValue};
pub(crate) use operand::{Destination, Source, register_destination, register_source};
pub(crate) use phase_barrier::{Phase, PhaseBarrier};

use crate::Gap;
use crate::compute::Operation;
use flipwave_device::Address;
use flipwave_machine::Exactness;
use flipwave_ptx::{Code, Inst, MatrixForm, Space};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A loaded module.
pub struct Program {
    /// The code.
    pub code: Arc<Code>,
    /// The instructions with their effects, in the order of the code.
    pub(crate) steps: Vec<Step>,
    /// Addresses of the variables, in the order of [`Code::variables`].
    pub(crate) addresses: Vec<Address>,
    /// Bytes of shared memory that the module declares.
    pub(crate) shared_bytes: u64,
    /// Functions that may call themselves.
    pub(crate) recursive: BTreeSet<usize>,
}

/// An instruction that is ready to be executed.
pub(crate) struct Step {
    /// The instruction.
    pub inst: Inst,
    /// Its effect.
    pub op: Op,
}

/// The effect of an instruction.
pub(crate) enum Op {
    /// Computes results from operands.
    Compute {
        /// The results.
        operation: Operation,
        /// The operands.
        sources: Vec<Source>,
        /// Places of the results.
        destinations: Vec<Destination>,
    },
    /// Multiplies matrices in registers.
    Product(MatrixProduct),
    /// Loads values.
    Load {
        /// The memory.
        access: MemoryAccess,
        /// Places of the values.
        values: Vec<(MemoryValue, Destination)>,
    },
    /// Stores values.
    Store {
        /// The memory.
        access: MemoryAccess,
        /// The values.
        values: Vec<(MemoryValue, Source)>,
    },
    /// Changes a value in memory.
    Atomic {
        /// The memory.
        access: MemoryAccess,
        /// The operation.
        operation: AtomicOperation,
        /// The operands.
        sources: Vec<Source>,
        /// Place of the old value.
        destination: Destination,
    },
    /// Copies from global to shared memory.
    Copy(AsyncCopy),
    /// Loads matrices whose rows other lanes address, or stores them.
    Matrix(MatrixLoad),
    /// Continues at another instruction.
    Branch {
        /// The target.
        target: u64,
        /// Address at which diverged lanes meet.
        meeting: Option<u64>,
    },
    /// Continues at one of several instructions.
    IndexedBranch {
        /// Index of the target.
        index: Source,
        /// The targets.
        targets: Vec<u64>,
        /// Address at which diverged lanes meet.
        meeting: Option<u64>,
    },
    /// Calls a function.
    Call(CallOp),
    /// Returns from a function.
    Return,
    /// Ends lanes.
    Exit,
    /// Ends the dispatch with a fault.
    Trap(u8),
    /// Waits for other waves.
    Barrier(BarrierOp),
    /// Changes or tests a barrier in memory.
    PhaseBarrier(PhaseBarrier),
    /// Has no effect: the waves of this machine see each other's writes in program order.
    Nothing,
    /// Is not implemented.
    Gap(Gap),
}

/// A product of matrices in registers.
pub(crate) struct MatrixProduct {
    /// Dimensions and types.
    pub form: MatrixForm,
    /// Registers of A, B and C.
    pub sources: Vec<Source>,
    /// Registers of D.
    pub destinations: Vec<Destination>,
    /// Exactness of the results.
    pub exactness: Exactness,
}

impl Program {
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
        let all = self.code.variables.iter().zip(&self.addresses);
        all.filter(|(variable, _)| variable.space != Space::Shared)
            .map(|(variable, address)| (&*variable.name, *address, variable.bytes))
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
            _ => &Exactness::Exact,
        }
    }
}
