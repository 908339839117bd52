//! Extraction of a kernel from a library.

use super::RewriteError;
use crate::flow::ProgramSummary;
use flipwave_codeobj::{CodeObject, WriteError};

/// Extracts the kernel with index `kernel` and the functions that it may call into a code object, at the
/// same addresses, to be rewritten and loaded in addition to `object`. Returns `None` if code must not be
/// loaded twice ([`CodeObject::can_extract_kernels`]), if the file does not have the structure that lld
/// creates, or if the kernel may call any function.
///
/// # Errors
/// [`RewriteError::Flow`] for code that cannot be read, [`RewriteError::Write`] for a damaged file.
pub fn alone(object: &CodeObject, kernel: usize) -> Result<Option<CodeObject>, RewriteError> {
    if !object.can_extract_kernels() {
        return Ok(None);
    }
    let summary = ProgramSummary::for_kernel(object, kernel)?;
    if !summary.is_of_kernel() {
        return Ok(None);
    }
    let code: Vec<_> =
        (0..summary.count()).filter_map(|function| summary.extent(function)).collect();
    match object.extract_kernels(&[kernel], &code) {
        Ok(alone) => Ok(Some(alone)),
        Err(WriteError::Unsupported { .. }) => Ok(None),
        Err(reason) => Err(reason.into()),
    }
}
