//! A kernel of a library by itself.

use super::RewriteError;
use crate::flow::ProgramSummary;
use flipwave_codeobj::{CodeObject, WriteError};

/// A code object with one kernel of another, by its index, and with what the kernel may call: to be
/// rewritten, and loaded beside the other. All has the address that it has there. Nothing where code
/// cannot be loaded twice ([`CodeObject::can_extract_kernels`]), where the file has another structure than
/// lld gives code objects, and where the kernel may run any function.
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
