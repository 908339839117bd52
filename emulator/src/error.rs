//! What is in the way of emulation.

use crate::PatternError;
use flipwave_hooks::hook::HookError;
use flipwave_hooks::rewrite::RewriteError;
use flipwave_isa::{IsaError, Pc};
use std::fmt;

/// Why an instruction cannot be emulated.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The proxy.
    #[error("instruction `{instruction}`: {reason}")]
    Pattern {
        /// The instruction.
        instruction: String,
        /// What is wrong.
        reason: Box<PatternError>,
    },
    /// The hook.
    #[error("instruction `{instruction}`: {reason}")]
    Hook {
        /// The instruction.
        instruction: String,
        /// What is wrong.
        reason: Box<HookError>,
    },
    /// A hook whose parameters or result are not the proxy's operands.
    #[error("instruction `{instruction}`: hook `{prototype}` {reason}")]
    Signature {
        /// The instruction.
        instruction: String,
        /// The hook as it is declared.
        prototype: String,
        /// What does not fit, and what was expected.
        reason: String,
    },
    /// Two instructions of one name.
    #[error("instruction `{instruction}` is there twice")]
    Twice {
        /// Its name.
        instruction: String,
    },
    /// Nothing fits.
    #[error("instruction `{instruction}`: nothing in the program fits `{proxy}`; {nearest}")]
    NothingFits {
        /// The instruction.
        instruction: String,
        /// Its proxy.
        proxy: String,
        /// What comes nearest.
        nearest: Box<NearMiss>,
    },
    /// Native instructions that look like a proxy.
    #[error(
        "instruction `{instruction}`: not every instruction that fits `{proxy}` has the mark of a \
         proxy; without it: {}; choose a proxy that the program does not use itself, write proxies \
         with FLIPWAVE_PROXY (flipwave.h), or say `match: all` if all are meant",
        list(places)
    )]
    Collision {
        /// The instruction.
        instruction: String,
        /// Its proxy.
        proxy: String,
        /// Where.
        places: Vec<String>,
    },
    /// A mark at something that does not fit.
    #[error(
        "instruction `{instruction}`: {place} is marked as its proxy and does not fit `{proxy}`: {reason}"
    )]
    Mark {
        /// The instruction.
        instruction: String,
        /// Its proxy.
        proxy: String,
        /// Where.
        place: String,
        /// What does not fit.
        reason: String,
    },
    /// A mark of an instruction that is not known.
    #[error("{place} is marked as a proxy of `{instruction}`, which is not defined; defined are: {}", defined.join(", "))]
    Undefined {
        /// The name in the mark.
        instruction: String,
        /// Where.
        place: String,
        /// The names there are.
        defined: Vec<String>,
    },
    /// A place that fits two proxies.
    #[error("{place} fits the proxies of `{one}` and of `{other}`; choose proxies that differ")]
    Ambiguous {
        /// Where.
        place: String,
        /// An instruction.
        one: String,
        /// Another.
        other: String,
    },
    /// The engine left a proxy where it was.
    #[error("instruction `{instruction}` cannot be emulated at {place}: {reason}")]
    Refused {
        /// The instruction.
        instruction: String,
        /// Where.
        place: String,
        /// Why.
        reason: String,
    },
    /// The engine.
    #[error(transparent)]
    Rewrite(#[from] Box<RewriteError>),
    /// A target that has no decoder.
    #[error(transparent)]
    Isa(#[from] IsaError),
}

/// The first of some places, and how many more there are.
fn list(places: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = places.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match places.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// What comes nearest to a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NearMiss {
    /// There is no such operation at all.
    NoOperation,
    /// An instruction of the operation.
    Inst {
        /// Where.
        pc: Pc,
        /// The kernel or function.
        function: String,
        /// The instruction.
        text: String,
        /// What does not fit.
        reason: String,
    },
}

impl fmt::Display for NearMiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NearMiss::NoOperation => f.write_str("it has no instruction of this operation at all"),
            NearMiss::Inst { pc, function, text, reason } => {
                write!(f, "the nearest is `{text}` at {pc} in `{function}`: {reason}")
            }
        }
    }
}
