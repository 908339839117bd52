//! Errors of rewriting.

use super::hazards::PaddingError;
use super::prologue::PrologueError;
use crate::checker::Finding;
use crate::flow::{FlowError, NoRules};
use crate::hook::HookError;
use crate::layout::LayoutError;
use flipwave_codeobj::WriteError;
use flipwave_isa::{IsaError, Pc};

/// Errors returned when rewriting a code object.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// The code cannot be read.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The rules of the target are unknown.
    #[error(transparent)]
    NoRules(#[from] NoRules),
    /// The code enables expert scheduling mode, in which inserted instructions would need further waits.
    #[error(
        "the code enables expert scheduling mode at {pc}, in which hooks would need waits that \
         Flipwave does not insert; compile it without `-amdgpu-expert-scheduling-mode`"
    )]
    ExpertMode {
        /// The instruction that enables it.
        pc: Pc,
    },
    /// The code accesses registers above v255, which hooks cannot preserve.
    #[error(
        "the code accesses vector registers above v255 from {pc} on (s_set_vgpr_msb), which hooks cannot \
         preserve; compile it for at most 256 vector registers \
         (`__attribute__((amdgpu_num_vgpr(256)))`)"
    )]
    VgprBanks {
        /// The instruction that selects them.
        pc: Pc,
    },
    /// A hook call refers to a source that was not added.
    #[error("unknown hook source {index}; add the source first")]
    NoSource {
        /// Its index.
        index: usize,
    },
    /// The code object does not have a kernel or device function.
    #[error("no function `{wanted}`; available functions: {}", present.join(", "))]
    NoFunction {
        /// The requested name.
        wanted: String,
        /// The existing names.
        present: Vec<String>,
    },
    /// A reference in code that stays cannot be redirected to code that moves.
    #[error(
        "cannot redirect the reference at {pc} in `{from}`, which stays, to `{to}`, which moves; let \
         both stay or both move"
    )]
    Stale {
        /// The instruction.
        pc: Pc,
        /// Its function.
        from: String,
        /// The function that it refers to.
        to: String,
    },
    /// A request refers to an instruction that does not exist.
    #[error("request at instruction {index}, but the code has {count} instructions")]
    NoInstruction {
        /// Its index.
        index: u32,
        /// Number of instructions.
        count: usize,
    },
    /// A variable of the hooks is initialized with an address, which would require a relocation.
    #[error(
        "hook variable `{variable}` is initialized with an address, which is known only when the code \
         object is loaded; set it in a hook, or pass the address as an argument"
    )]
    Pointer {
        /// The variable.
        variable: String,
    },
    /// A hook cannot be compiled or called.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// LLVM does not support the target.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// The edited code cannot be laid out.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The padding against hazards cannot be computed.
    #[error(transparent)]
    Padding(#[from] PaddingError),
    /// The new code object cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The prologue of a kernel cannot be generated.
    #[error("kernel `{kernel}`: {reason}")]
    Prologue {
        /// The kernel.
        kernel: String,
        /// The reason.
        reason: PrologueError,
    },
    /// The checker rejected the rewritten code.
    #[error("the checker rejected the rewritten code:\n{}", list(.0))]
    Wrong(Vec<Finding>),
}

fn list(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
