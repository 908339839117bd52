//! Errors of reading PTX.

use crate::Position;

/// Error returned for a text that is not a PTX module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {kind}")]
pub struct ParseError {
    /// Position of the invalid token.
    pub position: Position,
    /// Description of the error.
    pub kind: ParseErrorKind,
}

/// Kinds of invalid PTX.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseErrorKind {
    /// A character that begins no token.
    #[error("invalid character `{}`", .0.escape_debug())]
    Character(char),
    /// A comment without end.
    #[error("unterminated comment; expected `*/`")]
    OpenComment,
    /// A string without end.
    #[error("unterminated string; expected `\"`")]
    OpenString,
    /// A literal that is not a number, or does not fit in 64 bits.
    #[error(
        "invalid number `{0}`; expected an integer of at most 64 bits, 0f and 8 or 0d and 16 hexadecimal digits, or a decimal floating-point number"
    )]
    Number(String),
    /// A token at a place where the grammar has another one.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// The tokens that the grammar allows.
        expected: &'static str,
        /// The token in the text.
        found: String,
    },
    /// A name of a type that PTX does not have.
    #[error("unknown type `.{0}`; expected a type like .b32, .u64, .f32 or .pred")]
    Type(String),
    /// Nesting of blocks, operands or expressions that is deeper than [`crate::MAX_DEPTH`].
    #[error("nested more than {} levels deep", crate::MAX_DEPTH)]
    Depth,
    /// A module that does not begin with its version.
    #[error("a module begins with `.version`, found {0}")]
    NoVersion(String),
}
