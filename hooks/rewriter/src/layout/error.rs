//! Why code cannot be laid out.

use flipwave_isa::{AssembleError, IsaError, Pc, Register};
use std::sync::Arc;

/// Code that cannot be laid out. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The new text does not begin where a kernel may.
    #[error("the new code is to lie at {address:#x}; it needs a multiple of 256")]
    Alignment {
        /// Where it was to lie.
        address: u64,
    },
    /// Edits of an instruction, a function or a routine that is not there.
    #[error("an edit names {what}, which the program does not have")]
    Unknown {
        /// What was named.
        what: String,
    },
    /// A piece of inserted code that is no whole instructions, or leads out of its code.
    #[error("{place}: inserted code is malformed: {reason}")]
    Piece {
        /// For what the code is inserted.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Code after an instruction that control does not come back from.
    #[error("{pc}: nothing runs after `{text}`: insert before it, or at the kernel's exit")]
    NoWayBack {
        /// The instruction.
        pc: Pc,
        /// Its text.
        text: String,
    },
    /// A function that cannot be moved was asked to be.
    #[error("{function}: cannot be moved, because of {pc}: {reason}; use trampolines")]
    Unmovable {
        /// The function.
        function: Arc<str>,
        /// The instruction that stands against it.
        pc: Pc,
        /// Why.
        reason: String,
    },
    /// An address computed from the PC that cannot be mended.
    #[error("{pc}: the address {target} in {register} cannot be mended: {reason}")]
    Chain {
        /// The `s_getpc_b64`.
        pc: Pc,
        /// The address.
        target: Pc,
        /// Where it is computed.
        register: Register,
        /// Why not.
        reason: String,
    },
    /// A direct branch to where no instruction begins.
    #[error("{pc}: branches to {target}, where no instruction of the program begins")]
    BranchTarget {
        /// The branch.
        pc: Pc,
        /// Where it goes.
        target: Pc,
    },
    /// A branch that no chain of islands helps.
    #[error(
        "the branch at {from} of the new code cannot reach {to}: there is no place for a branch \
         on the way; insert less code at one place"
    )]
    OutOfReach {
        /// The branch.
        from: Pc,
        /// Where it should go.
        to: Pc,
    },
    /// Islands that push each other out of reach again and again.
    #[error(
        "no places for islands are found in {rounds} rounds from which all branches reach: insert \
         less code, or let the functions move"
    )]
    Unsettled {
        /// How often it was tried.
        rounds: usize,
    },
    /// Sites whose code cannot be reached from where they are, or cannot reach back.
    #[error("trampolines cannot be reached at {}", list(.0))]
    Sites(
        /// The sites and why not, by ascending address.
        Vec<(Pc, String)>,
    ),
    /// The code object does not have the bytes of an instruction.
    #[error("{pc}: the code object has no bytes here")]
    NoBytes {
        /// The instruction.
        pc: Pc,
    },
    /// A kernel that preloads arguments cannot be moved with what stands at its entry.
    #[error(
        "{function}: it preloads its arguments, and the code at its entry, for firmware that \
         cannot, cannot be moved: at {pc}"
    )]
    PreloadEntry {
        /// The kernel.
        function: Arc<str>,
        /// What of that code refers to code elsewhere.
        pc: Pc,
    },
    /// LLVM does not know the target.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// LLVM does not assemble what layout inserts.
    #[error("cannot assemble a branch or an address: {0}")]
    Assemble(#[from] AssembleError),
    /// LLVM assembles what layout inserts in a form that layout does not know.
    #[error("unexpected encoding of `{text}`")]
    Encoding {
        /// The text.
        text: String,
    },
}

fn list(sites: &[(Pc, String)]) -> String {
    let each: Vec<String> = sites.iter().map(|(pc, reason)| format!("{pc} ({reason})")).collect();
    each.join(", ")
}
