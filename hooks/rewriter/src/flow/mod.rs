//! Instructions, basic blocks, functions, calls and loops of a code object.

mod access;
mod block;
mod draft;
mod error;
mod extent;
mod findings;
mod groups;
mod index;
mod loops;
mod read;
mod shared;
mod step;
mod survey;
mod track;
mod value;

#[cfg(test)]
pub(crate) mod tests;

pub use error::{FlowError, NoRules};
pub use groups::Groups;
pub(crate) use index::keys;
pub use index::{BlockIndex, FunctionIndex, IndexRange, IndexVec, InstIndex, Key};

pub use survey::Survey;

use flipwave_isa::{Inst, Pc, Register, RegisterSet, Target};
use std::sync::Arc;

/// The code of a code object.
#[derive(Clone, Debug)]
pub struct Disassembly {
    /// What it is compiled for.
    pub target: Target,
    /// Lanes of its waves.
    pub wave_size: u8,
    /// Where AccVGPRs begin, if code names some of them as VGPRs: instructions have them by their
    /// own names then, see [`Disassembly::isa`].
    pub accum_offset: Option<u16>,
    /// All instructions of all functions, by ascending address.
    pub instructions: IndexVec<InstIndex, Inst>,
    /// All blocks; those of one function together, by ascending address.
    pub blocks: IndexVec<BlockIndex, Block>,
    /// All functions, by ascending address.
    pub functions: IndexVec<FunctionIndex, Function>,
    /// Addresses that the code computes from its PC, by ascending address of the `s_getpc`.
    pub addresses: Vec<AddressChain>,
}

/// A basic block: control enters at its first instruction and leaves after its last. A call ends
/// a block.
#[derive(Clone, Debug)]
pub struct Block {
    /// The function it belongs to.
    pub function: FunctionIndex,
    /// Its instructions; never none.
    pub instructions: IndexRange<InstIndex>,
    /// Where control goes next, within the function. Behind a call: where it comes back.
    pub successors: Vec<Edge>,
    /// Blocks of the function that have an edge to this one.
    pub predecessors: Vec<BlockIndex>,
    /// How it ends.
    pub end: BlockEnd,
}

/// How control leaves a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockEnd {
    /// To its successors.
    Edges,
    /// Into a function, by the call that is its last instruction. There is one successor, where
    /// the call comes back, unless the function ends with the call.
    Call,
    /// Into a function that returns in place of this one. The function is in
    /// [`Function::calls`].
    TailCall,
    /// Back to the caller.
    Return,
    /// Nowhere: the program ends.
    EndOfProgram,
    /// To places that are not known; the function says so in [`Function::unresolved`].
    Unknown,
}

/// A way out of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The block it leads to.
    pub to: BlockIndex,
    /// How.
    pub kind: EdgeKind,
}

/// How control goes from one block to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeKind {
    /// To the next instruction.
    FallThrough,
    /// By a branch that is taken.
    Taken,
    /// Over a call that comes back.
    Return,
}

/// A kernel or a device function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name of its symbol.
    pub name: Arc<str>,
    /// Index into [`flipwave_codeobj::CodeObject::kernels`] where it is a kernel.
    pub kernel: Option<usize>,
    /// Registers that the descriptor gives its waves, where it is a kernel.
    pub allocated: Option<RegisterSet>,
    /// Its instructions; never none.
    pub instructions: IndexRange<InstIndex>,
    /// Its blocks; the first is the entry.
    pub blocks: IndexRange<BlockIndex>,
    /// Calls in it, by ascending address; tail calls too.
    pub calls: Vec<Call>,
    /// Whether code or data hold its address for other uses than the calls that are known: a call
    /// by a pointer may reach it.
    pub address_taken: bool,
    /// Natural loops, outer before inner.
    pub loops: Vec<Loop>,
    /// What could not be understood: places whose successors or addresses are unknown. A function
    /// with any cannot be moved.
    pub unresolved: Vec<Unresolved>,
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The call instruction.
    pub at: InstIndex,
    /// Whom it calls; `None` for a pointer whose value is not known.
    pub callee: Option<FunctionIndex>,
}

/// A natural loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The block that all ways into the loop go through.
    pub header: BlockIndex,
    /// Its blocks, inner loops included.
    pub blocks: Vec<BlockIndex>,
    /// How many loops it lies in, itself included.
    pub depth: u32,
}

/// A place that could not be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// The instruction.
    pub at: InstIndex,
    /// What that means for control.
    pub kind: UnresolvedKind,
    /// What is not known about it.
    pub reason: String,
}

/// Consequence of an unresolved place for control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnresolvedKind {
    /// None: the function cannot be moved, but where control goes is known.
    Address,
    /// Control leaves for an unknown place.
    Exit,
    /// Control may enter here from an unknown place.
    Entry,
}

/// An address computed from the PC: `s_getpc_b64`, then a sum with a literal in each half. The
/// code that moves must change the literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressChain {
    /// The `s_getpc_b64`.
    pub getpc: InstIndex,
    /// The addition (or subtraction) to the low half whose literal or constant counts.
    pub low: InstIndex,
    /// The addition (or subtraction) to the high half.
    pub high: InstIndex,
    /// Low half of the register pair that holds the sum.
    pub register: Register,
    /// The sum: an ELF virtual address of the code object, code or data.
    pub target: Pc,
}
