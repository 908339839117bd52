//! What can be wrong with a change of a code object.

use crate::{CodeObjectError, FieldError};

/// Why a changed code object cannot be written. Addresses are ELF virtual addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The file has a structure that would be lost or damaged.
    #[error("the code object cannot be written again: {what}; expected {expected}")]
    Unsupported {
        /// The structure.
        what: String,
        /// What can be written.
        expected: &'static str,
    },
    /// New contents that do not fit where they are asked to go.
    #[error("{what} at address {address:#x}: expected {expected}")]
    Place {
        /// The contents.
        what: &'static str,
        /// Where they should go.
        address: u64,
        /// What is possible.
        expected: String,
    },
    /// Something refers to code that moved, and nobody says where it is now.
    #[error(
        "{what} refers to address {address:#x} of the code that moved; expected an instruction"
    )]
    NotMoved {
        /// What refers to it.
        what: String,
        /// The old address.
        address: u64,
    },
    /// A kernel that the code object does not have.
    #[error("kernel number {kernel}; the code object has {count}")]
    UnknownKernel {
        /// Index into [`crate::CodeObject::kernels`].
        kernel: usize,
        /// Number of kernels.
        count: usize,
    },
    /// A descriptor's field that cannot hold its value.
    #[error("kernel `{kernel}`: {reason}")]
    Descriptor {
        /// The kernel.
        kernel: String,
        /// Which field.
        reason: FieldError,
    },
    /// The metadata note cannot be changed, or the result is no code object.
    #[error("the changed code object: {0}")]
    Result(#[from] CodeObjectError),
}

impl WriteError {
    pub(super) fn unsupported(what: impl Into<String>, expected: &'static str) -> WriteError {
        WriteError::Unsupported { what: what.into(), expected }
    }
}

impl From<object::build::Error> for WriteError {
    fn from(reason: object::build::Error) -> WriteError {
        WriteError::unsupported(reason.to_string(), "the structure that lld gives code objects")
    }
}
