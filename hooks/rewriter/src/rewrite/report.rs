//! What was done to a code object.

use super::Keeping;
use crate::checker::Proof;
use crate::hook::EntryValue;
use crate::layout::Placement;
use crate::point::When;
use crate::registers::Allocation;
use flipwave_isa::Pc;
use std::collections::BTreeMap;
use std::time::Duration;

/// What was done, and what was not.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Each kernel with code that was changed.
    pub kernels: Vec<KernelReport>,
    /// Sites that were left out.
    pub refused: Vec<Refused>,
    /// Hook calls that were placed.
    pub placed: usize,
    /// Of these: the hook lies in dead registers, nothing had to make room for it.
    pub without_saves: usize,
    /// Instructions inserted where code meets that was not compiled together.
    pub padding: u32,
    /// Why the debug information is gone, where it could not follow the code.
    pub debug_lost: Option<String>,
    /// What the checker proved; nothing where it was switched off.
    pub proof: Option<Proof>,
    /// Time for compiling hooks, or for finding them compiled.
    pub compiling: Duration,
    /// Time for everything else but the checker.
    pub rewriting: Duration,
    /// Time for the checker.
    pub checking: Duration,
}

/// What became of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelReport {
    /// Its name.
    pub name: String,
    /// How hooks were put into it.
    pub placement: Placement,
    /// Registers that it had.
    pub before: Allocation,
    /// Registers that it has now.
    pub after: Allocation,
    /// How what hooks ask for all through it is kept, for all kernels that share functions.
    pub state: BTreeMap<EntryValue, Keeping>,
    /// Moves of that between registers, in the code of all kernels that share functions.
    pub moves: usize,
}

/// A site that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The instruction.
    pub pc: Pc,
    /// Its text.
    pub instruction: String,
    /// When the hook should have run.
    pub when: When,
    /// The hook.
    pub hook: String,
    /// Why not.
    pub reason: String,
}
