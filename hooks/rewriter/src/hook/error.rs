//! What can be wrong with a hook.

use flipwave_isa::{AssembleError, DecodeError, IsaError};
use std::path::PathBuf;

/// A hook that cannot be compiled, called or placed.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// No source.
    #[error("cannot read the hooks' source {}: {reason}", file.display())]
    Source {
        /// The file.
        file: PathBuf,
        /// Why not.
        reason: std::io::Error,
    },
    /// No compiler.
    #[error(
        "cannot use the compiler `{}`: {reason}; install Debian's package clang-22, or another from \
         clang-18 on, or set FLIPWAVE_CLANG to clang's path",
        clang.display()
    )]
    Clang {
        /// The program.
        clang: PathBuf,
        /// Why not.
        reason: std::io::Error,
    },
    /// The compiler was ended with the program that called it.
    #[error("interrupted while the compiler `{}` was running", clang.display())]
    Interrupted {
        /// The program.
        clang: PathBuf,
    },
    /// Compiled hooks cannot be kept.
    #[error(
        "cannot keep compiled hooks in {}: {reason}; set FLIPWAVE_CACHE to another folder",
        path.display()
    )]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        reason: std::io::Error,
    },
    /// The compiler refused.
    #[error("{source_name} does not compile for {target}:\n{messages}")]
    Rejected {
        /// The source.
        source_name: String,
        /// What for.
        target: String,
        /// What the compiler printed.
        messages: String,
    },
    /// What the compiler wrote is not what was expected of it.
    #[error("{source_name}: the compiler's output is not understood: {reason}")]
    Output {
        /// The source.
        source_name: String,
        /// What of it.
        reason: String,
    },
    /// A hook that the source does not have.
    #[error(
        "{source_name} has no function `{function}`; it has {}",
        if present.is_empty() { "none".to_owned() } else { present.join(", ") }
    )]
    NoFunction {
        /// The source.
        source_name: String,
        /// What was asked for.
        function: String,
        /// What is there.
        present: Vec<String>,
    },
    /// Too few or too many arguments.
    #[error("hook `{prototype}` takes {expected} arguments, {given} are given")]
    ArgumentCount {
        /// The hook as it is declared.
        prototype: String,
        /// How many it takes.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// An argument that does not fit.
    #[error("hook `{function}`, parameter `{parameter}`: {reason}")]
    Argument {
        /// The hook.
        function: String,
        /// The parameter, with its type.
        parameter: String,
        /// What was given and what is expected.
        reason: String,
    },
    /// Results that do not fit the registers they go to.
    #[error("hook `{function}`: {reason}")]
    Results {
        /// The hook.
        function: String,
        /// What is returned and what is expected.
        reason: String,
    },
    /// A hook that does what hooks cannot do.
    #[error("hook `{function}` {reason}")]
    Unsupported {
        /// The hook.
        function: String,
        /// What it does and why it cannot.
        reason: String,
    },
    /// Registers that a body's groups cannot be given.
    #[error("registers of a hook cannot be renamed: {0}")]
    Renaming(String),
    /// An instruction of a hook, or one to be put in place of another, that does not assemble.
    #[error("`{text}` does not assemble: {reason}")]
    Assemble {
        /// The instruction.
        text: String,
        /// LLVM's complaint.
        reason: AssembleError,
    },
    /// A target that has no decoder.
    #[error(transparent)]
    Isa(#[from] IsaError),
    /// The compiler wrote something that is no instruction.
    #[error("hook `{function}`: {reason}")]
    Decode {
        /// The hook.
        function: String,
        /// What is wrong.
        reason: DecodeError,
    },
}
