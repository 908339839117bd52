//! Errors of hooks.

use flipwave_isa::{AssembleError, DecodeError, IsaError};
use std::path::PathBuf;

/// Errors returned when compiling, calling or inserting hooks.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// The source cannot be read.
    #[error("cannot read the hook source {}: {reason}", file.display())]
    Source {
        /// The file.
        file: PathBuf,
        /// The reason.
        reason: std::io::Error,
    },
    /// The compiler cannot be used.
    #[error(
        "cannot use the compiler `{}`: {reason}; install Debian's package clang-22, or any version \
         since clang-18, or set FLIPWAVE_CLANG to clang's path",
        clang.display()
    )]
    Clang {
        /// The program.
        clang: PathBuf,
        /// The reason.
        reason: std::io::Error,
    },
    /// The compiler was interrupted together with the program.
    #[error("interrupted while the compiler `{}` was running", clang.display())]
    Interrupted {
        /// The program.
        clang: PathBuf,
    },
    /// Compiled hooks cannot be cached.
    #[error(
        "cannot cache compiled hooks in {}: {reason}; set FLIPWAVE_CACHE to another folder",
        path.display()
    )]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        reason: std::io::Error,
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
    /// The output of the compiler is unexpected.
    #[error("{source_name}: unexpected compiler output: {reason}")]
    Output {
        /// The source.
        source_name: String,
        /// The unexpected part.
        reason: String,
    },
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
    /// The number of arguments is wrong.
    #[error("hook `{prototype}` has {expected} parameters, but the call passes {given} arguments")]
    ArgumentCount {
        /// Prototype of the hook.
        prototype: String,
        /// Number of parameters.
        expected: usize,
        /// Number of arguments.
        given: usize,
    },
    /// An argument does not match its parameter.
    #[error("hook `{function}`, parameter `{parameter}`: {reason}")]
    Argument {
        /// The hook.
        function: String,
        /// The parameter, with its type.
        parameter: String,
        /// The mismatch.
        reason: String,
    },
    /// The value of an argument cannot be computed at an instruction.
    #[error("hook `{function}`, parameter `{parameter}`: {reason}")]
    Unavailable {
        /// The hook.
        function: String,
        /// The parameter, with its type.
        parameter: String,
        /// The reason.
        reason: String,
    },
    /// The result does not match its registers.
    #[error("hook `{function}`: {reason}")]
    Results {
        /// The hook.
        function: String,
        /// The mismatch.
        reason: String,
    },
    /// The hook uses an unsupported feature.
    #[error("hook `{function}` {reason}")]
    Unsupported {
        /// The hook.
        function: String,
        /// The feature and why it is not supported.
        reason: String,
    },
    /// The registers of a body cannot be renamed.
    #[error("cannot rename the registers of a hook: {0}")]
    Renaming(String),
    /// An instruction of a hook or an inserted instruction does not assemble.
    #[error("`{text}` does not assemble: {reason}")]
    Assemble {
        /// The instruction.
        text: String,
        /// LLVM's message.
        reason: AssembleError,
    },
    /// LLVM does not support the target.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// An instruction of the compiled hook does not decode.
    #[error("hook `{function}`: {reason}")]
    Decode {
        /// The hook.
        function: String,
        /// The reason.
        reason: DecodeError,
    },
}
