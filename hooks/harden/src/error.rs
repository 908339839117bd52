//! Errors of hardening.

use flipwave_hooks::hook::HookError;
use flipwave_hooks::rewrite::RewriteError;
use flipwave_isa::IsaError;
use flipwave_ptx_hooks::PtxHookError;

/// The reasons why an instruction is not duplicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Reason {
    /// The instruction is a store, a branch, an atomic operation or a wait.
    #[error("it has side effects or no result")]
    Kind,
    /// The instruction loads memory that may change between two loads.
    #[error("it loads memory that may change in between")]
    Coherent,
    /// The instruction depends on the clock, the PC, hardware registers, the active lanes or a register
    /// index, or combines two operations.
    #[error("a second execution may give a different result")]
    State,
    /// The instruction reads and writes SCC or the carry.
    #[error("it reads and writes a carry")]
    Carry,
    /// The instruction writes EXEC, M0 or another special register.
    #[error("it writes a special register")]
    Special,
    /// The instruction writes the predicate that guards it.
    #[error("it writes the predicate that guards it")]
    Guard,
    /// The results are parts of registers, or have a type that cannot be compared.
    #[error("its results are not predicates or whole registers of 16, 32 or 64 bits")]
    Type,
    /// The copy cannot be encoded.
    #[error("it cannot be encoded with a different destination register")]
    Encoding,
    /// The kernel has no free registers for the copy.
    #[error("the kernel has no free registers for a copy of its result")]
    Registers,
    /// The engine refused to insert the copy.
    #[error("no instructions can be inserted there")]
    Refused,
}

/// Errors returned when hardening a module.
#[derive(Debug, thiserror::Error)]
pub enum HardenError {
    /// The hook that counts detected differences cannot be compiled.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// The code cannot be rewritten.
    #[error(transparent)]
    Rewrite(#[from] RewriteError),
    /// The PTX module cannot be rewritten.
    #[error(transparent)]
    Ptx(#[from] PtxHookError),
    /// The target has no decoder.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// The hooks of a kernel cannot be inserted.
    #[error("kernel `{kernel}` cannot be hardened: {reason}")]
    Kernel {
        /// The kernel.
        kernel: String,
        /// The reason.
        reason: String,
    },
}
