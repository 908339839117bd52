//! Errors of emulation.

use crate::{PatternError, PtxPatternError};
use flipwave_hooks::hook::HookError;
use flipwave_hooks::rewrite::RewriteError;
use flipwave_isa::{IsaError, Pc};
use flipwave_ptx_hooks::PtxHookError;
use std::fmt;

/// Errors returned when finding and replacing proxies.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The proxy pattern is invalid.
    #[error("instruction `{instruction}`: {reason}")]
    Pattern {
        /// The emulated instruction.
        instruction: String,
        /// The error.
        reason: Box<PatternError>,
    },
    /// The proxy pattern is invalid in PTX.
    #[error("instruction `{instruction}`: {reason}")]
    PtxPattern {
        /// The emulated instruction.
        instruction: String,
        /// The error.
        reason: Box<PtxPatternError>,
    },
    /// The hook does not compile for PTX, or does not exist.
    #[error("instruction `{instruction}`: {reason}")]
    PtxHook {
        /// The emulated instruction.
        instruction: String,
        /// The error.
        reason: Box<PtxHookError>,
    },
    /// A PTX module cannot be rewritten.
    #[error(transparent)]
    PtxRewrite(Box<PtxHookError>),
    /// The hook does not compile or does not exist.
    #[error("instruction `{instruction}`: {reason}")]
    Hook {
        /// The emulated instruction.
        instruction: String,
        /// The error.
        reason: Box<HookError>,
    },
    /// The parameters or the result of the hook do not match the proxy's operands.
    #[error("instruction `{instruction}`: hook `{prototype}` {reason}")]
    Signature {
        /// The emulated instruction.
        instruction: String,
        /// The declaration of the hook.
        prototype: String,
        /// The mismatch, and what was expected.
        reason: String,
    },
    /// Two instructions have the same name.
    #[error("duplicate instruction `{instruction}`")]
    Duplicate {
        /// The name.
        instruction: String,
    },
    /// The program has no proxy of an instruction.
    #[error(
        "instruction `{instruction}`: no instruction in the program matches `{proxy}`; {closest}"
    )]
    NoProxy {
        /// The emulated instruction.
        instruction: String,
        /// The proxy pattern.
        proxy: String,
        /// The closest match.
        closest: Box<ClosestMatch>,
    },
    /// Native instructions match the proxy pattern.
    #[error(
        "instruction `{instruction}`: unmarked instructions match the proxy `{proxy}`: {}; choose a \
         proxy that the program does not otherwise use, write proxies with FLIPWAVE_PROXY (flipwave.h), \
         or set `match: all` to replace all of them",
        list(locations)
    )]
    Collision {
        /// The emulated instruction.
        instruction: String,
        /// The proxy pattern.
        proxy: String,
        /// The unmarked instructions.
        locations: Vec<String>,
    },
    /// A marked instruction does not match the proxy pattern.
    #[error(
        "instruction `{instruction}`: {location} is marked as its proxy but does not match `{proxy}`: {reason}"
    )]
    MarkMismatch {
        /// The emulated instruction.
        instruction: String,
        /// The proxy pattern.
        proxy: String,
        /// The marked instruction.
        location: String,
        /// The mismatch.
        reason: String,
    },
    /// A mark names an undefined instruction.
    #[error("unknown instruction `{instruction}`: {location} is marked as its proxy; expected one of {}", defined.join(", "))]
    Undefined {
        /// The name in the mark.
        instruction: String,
        /// The marked address.
        location: String,
        /// The names of the defined instructions.
        defined: Vec<String>,
    },
    /// An instruction matches two proxy patterns.
    #[error(
        "{location} matches the proxies of `{first}` and `{second}`; choose proxies that differ"
    )]
    Ambiguous {
        /// The instruction.
        location: String,
        /// An emulated instruction.
        first: String,
        /// Another emulated instruction.
        second: String,
    },
    /// The engine refused to replace a proxy.
    #[error("instruction `{instruction}`: cannot replace the proxy at {location}: {reason}")]
    Refused {
        /// The emulated instruction.
        instruction: String,
        /// The proxy.
        location: String,
        /// The reason.
        reason: String,
    },
    /// The code cannot be rewritten.
    #[error(transparent)]
    Rewrite(#[from] Box<RewriteError>),
    /// The target has no decoder.
    #[error(transparent)]
    Isa(#[from] IsaError),
}

/// Lists the first locations and the number of further ones.
fn list(locations: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = locations.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match locations.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The instruction that is the closest match of a pattern without matching it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClosestMatch {
    /// No instruction has the operation of the pattern.
    NoOperation,
    /// An instruction with the same operation.
    Inst {
        /// The address of the instruction.
        pc: Pc,
        /// The kernel or device function.
        function: String,
        /// The instruction in assembly syntax.
        text: String,
        /// The mismatch.
        reason: String,
    },
}

impl fmt::Display for ClosestMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClosestMatch::NoOperation => f.write_str("no instruction has this operation"),
            ClosestMatch::Inst { pc, function, text, reason } => {
                write!(f, "the closest match is `{text}` at {pc} in `{function}`: {reason}")
            }
        }
    }
}
