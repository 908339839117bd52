//! Errors of layout.

use flipwave_isa::{AssembleError, IsaError, Pc, Register};
use std::sync::Arc;

/// Errors returned when laying out code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The address of the new text is not aligned.
    #[error("misaligned address {address:#x} of the new code: expected a multiple of 256")]
    Alignment {
        /// The requested address.
        address: u64,
    },
    /// An edit refers to an instruction, function or routine that does not exist.
    #[error("edit of {what}, which the program does not have")]
    Unknown {
        /// The missing item.
        what: String,
    },
    /// A piece of inserted code has incomplete instructions, or branches out of its code.
    #[error("{place}: malformed inserted code: {reason}")]
    Piece {
        /// The purpose of the code.
        place: String,
        /// The defect.
        reason: String,
    },
    /// Code was inserted after an instruction that has no known successor.
    #[error("{pc}: nothing runs after `{text}`; insert before it, or at the kernel's exit")]
    NoWayBack {
        /// The instruction.
        pc: Pc,
        /// Its text.
        text: String,
    },
    /// A function with a position-dependent instruction cannot be moved.
    #[error("{function}: cannot be moved because of {pc}: {reason}; use trampolines")]
    Unmovable {
        /// The function.
        function: Arc<str>,
        /// The position-dependent instruction.
        pc: Pc,
        /// Why it cannot be moved.
        reason: String,
    },
    /// A PC-relative address cannot be adjusted.
    #[error("{pc}: cannot adjust the address {target} in {register}: {reason}")]
    Chain {
        /// The `s_getpc_b64`.
        pc: Pc,
        /// The address.
        target: Pc,
        /// The destination register.
        register: Register,
        /// Why not.
        reason: String,
    },
    /// The target of a direct branch is not the start of an instruction.
    #[error("{pc}: branch to {target}, where no instruction of the program starts")]
    BranchTarget {
        /// The branch.
        pc: Pc,
        /// The branch target.
        target: Pc,
    },
    /// A branch cannot reach its target, even with islands.
    #[error(
        "the branch at {from} of the new code cannot reach {to}: there is no space for an island \
         in between; insert less code at one place"
    )]
    OutOfReach {
        /// The branch.
        from: Pc,
        /// The branch target.
        to: Pc,
    },
    /// The placement of islands does not converge.
    #[error(
        "placement of branch islands did not converge in {rounds} rounds; insert less code, or let \
         the functions move"
    )]
    Unsettled {
        /// Number of rounds.
        rounds: usize,
    },
    /// Trampolines of some sites cannot be reached, or cannot reach back.
    #[error("trampolines cannot be reached at {}", list(.0))]
    Sites(
        /// The sites with reasons, by ascending address.
        Vec<(Pc, String)>,
    ),
    /// The code object has no bytes at the address of an instruction.
    #[error("{pc}: the code object has no bytes here")]
    NoBytes {
        /// The instruction.
        pc: Pc,
    },
    /// The entry code of a kernel that preloads arguments cannot be moved.
    #[error(
        "{function}: cannot move the code at the entry of this kernel with preloaded arguments, \
         which older firmware runs: it refers to other code at {pc}"
    )]
    PreloadEntry {
        /// The kernel.
        function: Arc<str>,
        /// The instruction that refers to other code.
        pc: Pc,
    },
    /// LLVM does not support the target.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// LLVM cannot assemble an instruction that layout inserts.
    #[error("cannot assemble a branch or an address: {0}")]
    Assemble(#[from] AssembleError),
    /// LLVM encodes an instruction that layout inserts in an unexpected form.
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
