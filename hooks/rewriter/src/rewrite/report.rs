//! Report of a rewrite.

use super::ValueStorage;
use crate::checker::Proof;
use crate::hook::EntryValue;
use crate::layout::Placement;
use crate::point::When;
use crate::registers::Allocation;
use flipwave_isa::Pc;
use std::collections::BTreeMap;
use std::time::Duration;

/// Results of a rewrite.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Kernels with changed code.
    pub kernels: Vec<KernelReport>,
    /// Refused requests.
    pub refused: Vec<Refused>,
    /// Number of inserted hook calls.
    pub placed: usize,
    /// Number of inserted hook calls without spilled registers.
    pub without_spills: usize,
    /// Instructions inserted against hazards between original and inserted code.
    pub padding: u32,
    /// Reason why the debug information was removed, if it could not be updated.
    pub debug_lost: Option<String>,
    /// Result of the checker; `None` if it is disabled.
    pub proof: Option<Proof>,
    /// Time for compiling hooks or loading them from the cache.
    pub compiling: Duration,
    /// Time for rewriting, without the checker.
    pub rewriting: Duration,
    /// Time for checking.
    pub checking: Duration,
}

/// Results for a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelReport {
    /// Its name.
    pub name: String,
    /// Placement of its code.
    pub placement: Placement,
    /// Original register allocation.
    pub before: Allocation,
    /// New register allocation.
    pub after: Allocation,
    /// Storage of values that hooks need throughout the kernel. Kernels that share functions share it.
    pub state: BTreeMap<EntryValue, ValueStorage>,
    /// Number of moves of these values between registers, for all kernels that share functions.
    pub moves: usize,
}

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The instruction.
    pub pc: Pc,
    /// Its text.
    pub instruction: String,
    /// Requested position.
    pub when: When,
    /// The hook; empty for inserted text.
    pub hook: String,
    /// Reason of the refusal.
    pub reason: String,
}
