//! Splices: boundaries between original and inserted code.

use crate::flow::InstIndex;
use flipwave_isa::RegisterSet;

/// A transfer of control between original instructions that may pass through inserted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Splice {
    /// Address in the new code at which the splice begins.
    pub start: u64,
    /// The original instruction that control must reach.
    pub to: InstIndex,
    /// The reason why control reaches `start`.
    pub from: SpliceOrigin,
}

/// The reason why control reaches the start of a splice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpliceOrigin {
    /// An original instruction falls through or branches to it.
    Flow,
    /// Its address is computed by the code or stored in memory.
    Address,
    /// It is an old address of a function that remains in place and has unresolved control flow.
    Old,
    /// The kernel with this index starts there.
    Kernel(usize),
}

/// An original instruction at which a splice may end.
#[derive(Clone, Debug)]
pub struct SpliceEnd {
    /// The instruction.
    pub index: InstIndex,
    /// Its address in the new code.
    pub pc: u64,
    /// Registers written by removed instructions that preceded it in the original.
    pub not_written: RegisterSet,
}

/// An indirect jump in inserted code with its resolved target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComputedJump {
    /// Address of the jump in the new code.
    pub from: u64,
    /// Address of its target in the new code.
    pub to: u64,
}
