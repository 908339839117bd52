//! Kernel arguments laid out as the metadata says.

use crate::{Address, Dim3};
use flipwave_codeobj::Kernel;

/// The value of one explicit kernel argument.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentValue {
    /// A device pointer.
    Buffer(Address),
    /// A value passed as it is, little-endian.
    Bytes(Vec<u8>),
    /// Bytes of dynamic LDS behind a pointer argument.
    DynamicLds(u32),
}

/// Arguments that do not fit the kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernargError {
    /// Too few or too many.
    #[error("kernel `{kernel}` takes {expected} arguments ({signature}), {given} given")]
    Count {
        /// The kernel.
        kernel: String,
        /// How many it takes.
        expected: usize,
        /// How many were given.
        given: usize,
        /// Its parameters, as the metadata describes them.
        signature: String,
    },
    /// A value of the wrong kind or size.
    #[error("argument {index} of kernel `{kernel}` ({parameter}): {reason}")]
    Mismatch {
        /// The kernel.
        kernel: String,
        /// Position among the explicit arguments, from 0.
        index: usize,
        /// The parameter, as the metadata describes it.
        parameter: String,
        /// What was given and what is expected.
        reason: String,
    },
}

/// The kernarg segment of a launch and the LDS its pointer arguments ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the segment.
    pub kernarg: Vec<u8>,
    /// Dynamic LDS, in bytes.
    pub dynamic_lds: u32,
}

/// Lays out the kernarg segment: explicit arguments from `values`, hidden ones from the launch
/// shape (AMDGPUUsage, "Code Object V5 Metadata", hidden value kinds).
///
/// # Errors
/// [`KernargError`] if the values do not fit the kernel's parameters.
pub fn layout(
    kernel: &Kernel,
    values: &[ArgumentValue],
    grid: Dim3,
    workgroup: Dim3,
) -> Result<Layout, KernargError> {
    let _ = (kernel, values, grid, workgroup);
    todo!("follows the metadata reader")
}
