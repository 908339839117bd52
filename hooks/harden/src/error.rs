//! What cannot be hardened.

use flipwave_hooks::hook::HookError;
use flipwave_hooks::rewrite::RewriteError;
use flipwave_isa::IsaError;

/// Why an instruction is not executed twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Reason {
    /// A store, a branch, an atomic operation, a wait.
    #[error("it does something that must not be done twice, or has no result")]
    Kind,
    /// Memory that others may change between two loads.
    #[error("it loads what others may change meanwhile")]
    Coherent,
    /// The clock, the PC, hardware registers, registers by index, two operations in one.
    #[error("a second execution would not give the same")]
    State,
    /// Carries from SCC to SCC.
    #[error("it reads SCC and writes it")]
    Carry,
    /// EXEC, M0 and others that there is one of.
    #[error("its result goes to a register that there is one of")]
    Special,
    /// No such encoding.
    #[error("there is no such instruction with its result in another register")]
    Encoding,
    /// No registers for the copy.
    #[error("the kernel has no registers left for a copy of its result")]
    Registers,
    /// Refused by the engine.
    #[error("nothing can be inserted there")]
    Refused,
}

/// Why a code object is not hardened.
#[derive(Debug, thiserror::Error)]
pub enum HardenError {
    /// The hook that counts.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// The engine.
    #[error(transparent)]
    Rewrite(#[from] RewriteError),
    /// A target without a decoder.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// The hooks of a kernel cannot be placed.
    #[error("kernel `{kernel}` cannot be hardened: {reason}")]
    Kernel {
        /// The kernel.
        kernel: String,
        /// Why not.
        reason: String,
    },
}
