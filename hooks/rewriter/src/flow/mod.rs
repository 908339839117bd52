//! Control-flow analysis: instructions, basic blocks, functions, calls and loops of a code object.
//!
//! [`ProgramSummary`] finds the functions and their control flow, and [`Disassembly`] holds the decoded
//! code of all or some of them.

mod access;
mod block;
mod decoded;
mod effect;
mod error;
mod extents;
mod findings;
mod groups;
mod index;
mod loops;
mod read;
mod summary;
mod track;
mod value;
mod vgpr_aliases;

#[cfg(test)]
pub(crate) mod tests;

pub use error::{FlowError, NoRules};
pub use groups::Groups;
pub(crate) use index::keys;
pub use index::{BlockIndex, FunctionIndex, IndexRange, IndexVec, InstIndex, Key};

pub use summary::ProgramSummary;

use flipwave_isa::{Inst, Pc, Register, RegisterSet, Target};
use std::sync::Arc;

/// The decoded code of a code object.
#[derive(Clone, Debug)]
pub struct Disassembly {
    /// The target.
    pub target: Target,
    /// Number of lanes of a wave.
    pub wave_size: u8,
    /// Number of the first VGPR that is an AccVGPR, if the code names AccVGPRs as VGPRs. In
    /// `instructions`, such operands are AccVGPRs; see [`Disassembly::isa`].
    pub accum_offset: Option<u16>,
    /// All instructions of all functions, by ascending address.
    pub instructions: IndexVec<InstIndex, Inst>,
    /// All blocks by function, and by ascending address within a function.
    pub blocks: IndexVec<BlockIndex, Block>,
    /// All functions, by ascending address.
    pub functions: IndexVec<FunctionIndex, Function>,
    /// PC-relative addresses, by ascending address of their `s_getpc_b64`.
    pub addresses: Vec<AddressChain>,
}

/// A basic block. Calls end blocks.
#[derive(Clone, Debug)]
pub struct Block {
    /// The function that contains the block.
    pub function: FunctionIndex,
    /// Instructions; not empty.
    pub instructions: IndexRange<InstIndex>,
    /// Edges to other blocks of the function. After a call, the edge leads to the return address.
    pub successors: Vec<Edge>,
    /// Blocks with an edge to this one.
    pub predecessors: Vec<BlockIndex>,
    /// The way control leaves the block.
    pub end: BlockEnd,
}

/// The way control leaves a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockEnd {
    /// Through its edges.
    Edges,
    /// By calling a function with its last instruction. The edge leads to the return address; there is
    /// none if the function ends with the call.
    Call,
    /// By a tail call, which is in [`Function::calls`].
    TailCall,
    /// By returning to the caller.
    Return,
    /// The program ends.
    EndOfProgram,
    /// To an unknown address; see [`Function::unresolved`].
    Unknown,
}

/// An edge of the control-flow graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The destination.
    pub to: BlockIndex,
    /// The reason for the transfer of control.
    pub kind: EdgeKind,
}

/// The reason for a transfer of control between blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeKind {
    /// Control continues at the next instruction.
    FallThrough,
    /// A branch is taken.
    Taken,
    /// A called function returns.
    Return,
}

/// A kernel or a device function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name of its symbol.
    pub name: Arc<str>,
    /// Index into [`flipwave_codeobj::CodeObject::kernels`], for kernels.
    pub kernel: Option<usize>,
    /// Registers that the descriptor allocates, for kernels.
    pub allocated: Option<RegisterSet>,
    /// Instructions; not empty.
    pub instructions: IndexRange<InstIndex>,
    /// Blocks; the first is the entry.
    pub blocks: IndexRange<BlockIndex>,
    /// Calls and tail calls, by ascending address.
    pub calls: Vec<Call>,
    /// An indirect call may reach the function, because its address is used other than in resolved calls.
    pub address_taken: bool,
    /// Natural loops, outer loops first.
    pub loops: Vec<Loop>,
    /// Instructions whose successors or addresses are unknown. A function with unresolved instructions
    /// cannot be moved.
    pub unresolved: Vec<Unresolved>,
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The call instruction.
    pub at: InstIndex,
    /// The called function; `None` for an unknown pointer.
    pub callee: Option<FunctionIndex>,
}

/// A natural loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The block through which all paths enter the loop.
    pub header: BlockIndex,
    /// All blocks, including those of inner loops.
    pub blocks: Vec<BlockIndex>,
    /// Nesting depth; 1 for outermost loops.
    pub depth: u32,
}

/// An instruction that control-flow analysis could not resolve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// The instruction.
    pub at: InstIndex,
    /// Consequence for control flow.
    pub kind: UnresolvedKind,
    /// Description of the problem.
    pub reason: String,
}

/// Consequence of an unresolved instruction for control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnresolvedKind {
    /// None: all successors are known, but the function cannot be moved.
    Address,
    /// Control leaves to an unknown address.
    Exit,
    /// Control may enter here from unknown code.
    Entry,
}

/// A PC-relative address: `s_getpc_b64`, followed by the addition of a constant to each half. The
/// constants must change if the code moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressChain {
    /// The `s_getpc_b64`.
    pub getpc: InstIndex,
    /// The addition or subtraction of a constant to the low half.
    pub low: InstIndex,
    /// The addition or subtraction of a constant to the high half.
    pub high: InstIndex,
    /// Low half of the register pair that holds the sum.
    pub register: Register,
    /// The sum: the ELF virtual address of code or data.
    pub target: Pc,
}
