//! What stops a rewrite.

use super::hazards::PaddingError;
use super::prologue::PrologueError;
use crate::checker::Finding;
use crate::flow::{FlowError, NoRules};
use crate::hook::HookError;
use crate::layout::LayoutError;
use flipwave_codeobj::WriteError;
use flipwave_isa::{IsaError, Pc};

/// Why a code object was not rewritten.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// Its code.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// Its target.
    #[error(transparent)]
    NoRules(#[from] NoRules),
    /// Code in which inserted instructions would need waits that are not known.
    #[error(
        "the code turns on expert scheduling mode at {pc}, in which hooks would need waits that \
         Flipwave does not insert: compile it without `-amdgpu-expert-scheduling-mode`"
    )]
    ExpertMode {
        /// The instruction that turns it on.
        pc: Pc,
    },
    /// A source that was not added.
    #[error("a hook is asked for of source {index}, which was not added")]
    NoSource {
        /// Its index.
        index: usize,
    },
    /// A kernel or device function that the code object does not have.
    #[error("there is no function `{wanted}`; there are: {}", present.join(", "))]
    NoFunction {
        /// The name asked for.
        wanted: String,
        /// The names there are.
        present: Vec<String>,
    },
    /// Instructions that lead to code that is no longer instrumented.
    #[error(
        "`{from}` is to stay and `{to}` to move, but the way from {pc} cannot be mended: let both \
         stay, or both move"
    )]
    Stale {
        /// The instruction.
        pc: Pc,
        /// Its function.
        from: String,
        /// The function that it leads to.
        to: String,
    },
    /// An instruction that the code object does not have.
    #[error("a hook is asked for at instruction {index}; the code has {count}")]
    NoInstruction {
        /// Its index.
        index: u32,
        /// How many there are.
        count: usize,
    },
    /// A variable that starts with an address, which nobody would fill in.
    #[error(
        "variable `{variable}` of the hooks starts with an address, which is known only when the \
         code object is loaded: set it in a hook, or pass the address as an argument"
    )]
    Pointer {
        /// The variable.
        variable: String,
    },
    /// A hook.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// The target.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// New code in its place.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Inserted code beside other code.
    #[error(transparent)]
    Padding(#[from] PaddingError),
    /// The new file.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A kernel's prologue.
    #[error("kernel `{kernel}`: {reason}")]
    Prologue {
        /// The kernel.
        kernel: String,
        /// Why it cannot be made.
        reason: PrologueError,
    },
    /// The checker's objections.
    #[error("the rewritten code is wrong, and was not kept:\n{}", list(.0))]
    Wrong(Vec<Finding>),
}

fn list(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
