//! Errors of editing code objects.

use crate::{CodeObjectError, FieldError};

/// Errors returned when editing a code object. Addresses are ELF virtual addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The code object has a structure that editing would lose or damage, or the combination of
    /// changes is not supported.
    #[error("cannot edit the code object: {what}; expected {expected}")]
    Unsupported {
        /// The unsupported structure.
        what: String,
        /// The supported structure.
        expected: &'static str,
    },
    /// New contents do not fit at the requested address.
    #[error("cannot place {what} at address {address:#x}; expected {expected}")]
    Place {
        /// The contents.
        what: &'static str,
        /// The requested address.
        address: u64,
        /// The requirement that the request does not meet.
        expected: String,
    },
    /// A reference to replaced code has no new address.
    #[error(
        "{what} refers to address {address:#x} of the moved code; expected the address of an \
         instruction"
    )]
    NotMoved {
        /// The referring structure.
        what: String,
        /// The old address.
        address: u64,
    },
    /// The kernel index is out of range.
    #[error("kernel number {kernel} does not exist; the code object has {count} kernels")]
    UnknownKernel {
        /// Index into [`crate::CodeObject::kernels`].
        kernel: usize,
        /// Number of kernels.
        count: usize,
    },
    /// A value does not fit its descriptor field.
    #[error("kernel `{kernel}`: {reason}")]
    Descriptor {
        /// The kernel.
        kernel: String,
        /// The field's error.
        reason: FieldError,
    },
    /// The metadata note cannot be changed, or the result is not a valid code object.
    #[error("invalid edited code object: {0}")]
    Result(#[from] CodeObjectError),
}

impl WriteError {
    pub(super) fn unsupported(what: impl Into<String>, expected: &'static str) -> WriteError {
        WriteError::Unsupported { what: what.into(), expected }
    }
}

impl From<object::build::Error> for WriteError {
    fn from(reason: object::build::Error) -> WriteError {
        WriteError::unsupported(reason.to_string(), "a code object as linked by lld")
    }
}
