//! Errors of hooks in PTX.

use flipwave_host::child::ChildError;
use flipwave_ptx::{ParseError, ResolveError};
use std::path::PathBuf;

/// Errors returned when compiling, requesting or inserting hooks.
#[derive(Debug, thiserror::Error)]
pub enum PtxHookError {
    /// The compiler cannot be run.
    #[error(
        "cannot run the compiler `{}`: {reason}; install Debian's package clang-22, or set \
         FLIPWAVE_CLANG to clang's path",
        clang.display()
    )]
    Clang {
        /// The program.
        clang: PathBuf,
        /// The reason.
        reason: ChildError,
    },
    /// The compiler rejected the source.
    #[error("{source_name} does not compile for {target}:\n{messages}")]
    Rejected {
        /// The source.
        source_name: String,
        /// The target.
        target: String,
        /// Messages of the compiler.
        messages: String,
    },
    /// The compiler's output is not a module.
    #[error("{source_name}: unexpected compiler output: {reason}")]
    Output {
        /// The source.
        source_name: String,
        /// The reason.
        reason: ParseError,
    },
    /// The source has contents that hooks cannot have.
    #[error("{source_name}: {reason}")]
    Unsupported {
        /// The source.
        source_name: String,
        /// The reason.
        reason: String,
    },
    /// The names of a module cannot be resolved.
    #[error("invalid PTX module: {0}")]
    Resolve(#[from] ResolveError),
    /// The module is for another machine than hooks.
    #[error("{0}")]
    Module(String),
    /// The source does not have a function.
    #[error(
        "{source_name} has no function `{function}`; it has {}",
        if present.is_empty() { "none".to_owned() } else { present.join(", ") }
    )]
    NoFunction {
        /// The source.
        source_name: String,
        /// The requested name.
        function: String,
        /// The existing functions.
        present: Vec<String>,
    },
    /// A call cannot be inserted at an instruction.
    #[error("`{instruction}`: {reason}")]
    Refused {
        /// The instruction.
        instruction: String,
        /// The reason.
        reason: String,
    },
    /// A call does not match the hook.
    #[error("hook `{function}`: {reason}")]
    Call {
        /// The hook.
        function: String,
        /// The reason.
        reason: String,
    },
}
