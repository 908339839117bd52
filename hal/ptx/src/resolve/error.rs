//! Errors of resolving names.

use crate::Position;

/// Error returned for a module whose names cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {kind}")]
pub struct ResolveError {
    /// Position of the statement or declaration.
    pub position: Position,
    /// Description of the error.
    pub kind: ResolveErrorKind,
}

/// Kinds of errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveErrorKind {
    /// A name that is not declared.
    #[error("unknown name `{0}`; declare a register, variable, function or label of this name")]
    Unknown(String),
    /// A name that is declared twice.
    #[error("`{0}` is declared twice")]
    Duplicate(String),
    /// An operand with a form that no instruction accepts.
    #[error("invalid operand `{operand}`; expected {expected}")]
    Operand {
        /// The operand.
        operand: String,
        /// The accepted forms.
        expected: &'static str,
    },
    /// An initial value that is no constant, or has more parts than its variable.
    #[error(
        "invalid initial value of `{0}`; expected constants and addresses, at most as many as the variable has elements"
    )]
    Initializer(String),
    /// A variable whose size does not fit in memory.
    #[error("`{0}` is larger than 2^40 bytes")]
    Size(String),
    /// An alignment that is no power of two.
    #[error("invalid alignment {0}; expected a power of two")]
    Alignment(u64),
    /// More registers than can be numbered.
    #[error("more than 65535 words of registers in a function and the functions of its module")]
    TooManyRegisters,
}

pub(super) fn error(position: Position, kind: ResolveErrorKind) -> ResolveError {
    ResolveError { position, kind }
}
