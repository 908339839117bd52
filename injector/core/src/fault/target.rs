//! Targets of faults: the state that they strike.

use super::Scope;
use flipwave_arch::SumPart;
use std::fmt;
use std::str::FromStr;

/// State that a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultTarget {
    /// A register that an instruction writes, right after the instruction: VGPR, AccVGPR, SGPR, VCC,
    /// EXEC, SCC, M0, FLAT_SCRATCH.
    DestinationRegister,
    /// A register as one instruction reads it. After the instruction, it has its original value again,
    /// unless the instruction wrote it.
    SourceOperand,
    /// Any register of the wave's allocation, after any instruction.
    Register,
    /// A register word of the address of a load, as the load reads it.
    LoadAddress,
    /// A register word of the address of a store or an atomic, as the instruction reads it.
    StoreAddress,
    /// A register word of the data of a store or an atomic, as the instruction reads it.
    StoreValue,
    /// A word of the workgroup's LDS, after any instruction of its waves.
    Lds,
    /// A word of the program's buffers, after any instruction.
    GlobalMemory,
    /// A word of a lane's scratch memory, after any instruction.
    Scratch,
    /// A word of an instruction's encoding, for one execution, which then executes a different or an
    /// illegal instruction.
    Instruction,
    /// The decision of a conditional branch: 1 if taken.
    Branch,
    /// The program counter, after any instruction.
    ProgramCounter,
    /// A product of an element of A and one of B, inside a matrix multiplication.
    MatrixProduct,
    /// The partial sum of an element of D, after one of its steps.
    MatrixPartialSum,
    /// An element of C as it enters the sum. The register that holds it does not change.
    MatrixAccumulator,
}

impl FaultTarget {
    /// Every target, in the order documentation lists them.
    pub const ALL: [FaultTarget; 15] = [
        FaultTarget::DestinationRegister,
        FaultTarget::SourceOperand,
        FaultTarget::Register,
        FaultTarget::LoadAddress,
        FaultTarget::StoreAddress,
        FaultTarget::StoreValue,
        FaultTarget::Lds,
        FaultTarget::GlobalMemory,
        FaultTarget::Scratch,
        FaultTarget::Instruction,
        FaultTarget::Branch,
        FaultTarget::ProgramCounter,
        FaultTarget::MatrixProduct,
        FaultTarget::MatrixPartialSum,
        FaultTarget::MatrixAccumulator,
    ];

    /// The target's name in campaign files.
    pub fn name(self) -> &'static str {
        match self {
            FaultTarget::DestinationRegister => "destination_register",
            FaultTarget::SourceOperand => "source_operand",
            FaultTarget::Register => "register",
            FaultTarget::LoadAddress => "load_address",
            FaultTarget::StoreAddress => "store_address",
            FaultTarget::StoreValue => "store_value",
            FaultTarget::Lds => "lds",
            FaultTarget::GlobalMemory => "global_memory",
            FaultTarget::Scratch => "scratch",
            FaultTarget::Instruction => "instruction",
            FaultTarget::Branch => "branch",
            FaultTarget::ProgramCounter => "program_counter",
            FaultTarget::MatrixProduct => "matrix_product",
            FaultTarget::MatrixPartialSum => "matrix_partial_sum",
            FaultTarget::MatrixAccumulator => "matrix_accumulator",
        }
    }

    /// Returns `true` if the target supports the scope.
    pub(crate) fn has_scope(self, scope: Scope) -> bool {
        match self {
            // Shared by waves or by all: there is only one value.
            FaultTarget::Lds | FaultTarget::GlobalMemory => scope == Scope::Lane,
            // Shared by the lanes of a wave.
            FaultTarget::Instruction
            | FaultTarget::Branch
            | FaultTarget::ProgramCounter
            | FaultTarget::MatrixProduct
            | FaultTarget::MatrixPartialSum
            | FaultTarget::MatrixAccumulator => matches!(scope, Scope::Lane | Scope::Workgroup),
            _ => true,
        }
    }

    /// The supported scopes.
    pub fn scopes(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.has_scope(*scope))
    }

    /// Returns `true` if the struck state depends on the resources of the waves instead of the operands
    /// of the instruction.
    pub(crate) fn needs_resources(self) -> bool {
        matches!(
            self,
            FaultTarget::Register
                | FaultTarget::Lds
                | FaultTarget::GlobalMemory
                | FaultTarget::Scratch
        )
    }

    /// Returns `true` if the struck value can be a floating-point number according to the instruction.
    pub(crate) fn is_typed(self) -> bool {
        matches!(self, FaultTarget::DestinationRegister | FaultTarget::SourceOperand)
            || self.part_of_sum().is_some()
    }

    /// The part of a matrix multiplication's sum that is struck; `None` for other targets.
    pub fn part_of_sum(self) -> Option<SumPart> {
        match self {
            FaultTarget::MatrixProduct => Some(SumPart::Product),
            FaultTarget::MatrixPartialSum => Some(SumPart::PartialSum),
            FaultTarget::MatrixAccumulator => Some(SumPart::Accumulator),
            _ => None,
        }
    }
}

impl fmt::Display for FaultTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for FaultTarget {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<FaultTarget, UnknownTarget> {
        let found = FaultTarget::ALL.into_iter().find(|target| target.name() == name);
        found.ok_or_else(|| UnknownTarget(name.to_owned()))
    }
}

/// Error returned for an unknown target name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is not a fault target; expected one of: {names}",
    name = .0,
    names = FaultTarget::ALL.map(FaultTarget::name).join(", ")
)]
pub struct UnknownTarget(pub String);
