//! Instructions and their effects.

use super::{
    AsyncCopy, AtomicOperation, AtomicValue, BarrierOp, CallOp, Destination, MatrixLoad,
    MemoryAccess, MemoryValue, PhaseBarrier, Source, WarpgroupProduct,
};
use crate::Gap;
use crate::compute::Operation;
use flipwave_machine::Exactness;
use flipwave_ptx::{Inst, MatrixForm};

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
    /// Multiplies matrices in shared memory.
    Warpgroup(WarpgroupProduct),
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
    /// Changes values in memory, each by itself.
    Atomic {
        /// The memory.
        access: MemoryAccess,
        /// The operation.
        operation: AtomicOperation,
        /// The values.
        values: Vec<AtomicValue>,
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
