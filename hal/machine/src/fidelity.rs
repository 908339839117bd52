//! Fidelity of a run: the exactness of the executed operations, and the decisions that depend on
//! results that no document settles or that have an error.

use crate::Exactness;
use flipwave_arch::{Pc, SourceLine};
use flipwave_device::{ModuleId, WaveId};

/// The fidelity of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fidelity {
    /// Executed operations: unsettled ones first, then those with an error; within these by name.
    pub operations: Vec<OperationFidelity>,
    /// Decisions by unsettled results, in order of occurrence; then decisions that results within
    /// an error may have affected, by kernel and address.
    pub decisions: Vec<DoubtfulDecision>,
}

/// Exactness of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationFidelity {
    /// Name of the operation.
    pub operation: String,
    /// Exactness of the operation.
    pub exactness: Exactness,
    /// Number of wave executions.
    pub executions: u64,
}

/// Reason why results are in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Doubt {
    /// Not defined completely by any document.
    NotSettled,
    /// Within a stated error.
    WithinError,
}

/// A decision that depends on doubtful results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoubtfulDecision {
    /// Reason why the results are in doubt.
    pub doubt: Doubt,
    /// Kernel of the first dispatch with this decision.
    pub kernel: String,
    /// Code object of the instruction.
    pub module: ModuleId,
    /// ELF virtual address.
    pub pc: Pc,
    /// Assembly text.
    pub text: String,
    /// Source line, if the code object has line tables.
    pub line: Option<SourceLine>,
    /// Description of the decision, for example `decides a branch`.
    pub decides: String,
    /// Registers that held the values at the first occurrence.
    pub registers: Vec<String>,
    /// First wave with this decision; `None` if all executions of the instruction count.
    pub wave: Option<WaveId>,
    /// Number of occurrences.
    pub count: u64,
}
