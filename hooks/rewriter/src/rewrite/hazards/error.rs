//! Errors of padding.

/// Errors returned when padding code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PaddingError {
    /// Inserted code does not decode.
    #[error("cannot decode inserted code: {0}")]
    Decode(#[from] flipwave_isa::DecodeError),
    /// Padding does not assemble.
    #[error("cannot assemble padding: {0}")]
    Assemble(#[from] flipwave_isa::AssembleError),
}
