//! What stops a rewrite.

use crate::checker::Finding;
use crate::entry::EntryError;
use crate::flow::FlowError;
use crate::hook::HookError;
use crate::layout::LayoutError;
use crate::seams::SeamError;
use flipwave_codeobj::WriteError;
use flipwave_isa::IsaError;

/// Why a code object was not rewritten.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// Its code.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// A source that was not added.
    #[error("a hook is asked for of source {index}, which was not added")]
    NoSource {
        /// Its index.
        index: usize,
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
    Seam(#[from] SeamError),
    /// The new file.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A kernel's start.
    #[error("kernel `{kernel}`: {reason}")]
    Entry {
        /// The kernel.
        kernel: String,
        /// Why it cannot be made.
        reason: EntryError,
    },
    /// The checker's objections.
    #[error("the rewritten code is wrong, and was not kept:\n{}", list(.0))]
    Wrong(Vec<Finding>),
}

fn list(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
