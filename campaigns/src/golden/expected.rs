//! Comparison of the golden run's outputs with the `expected` files of the campaign, which contain the
//! results of a computation on the host, for instance.

use crate::file::kernels::{Buffer, BufferRole, Kernels};
use crate::outputs::compare::{Difference, Tolerance, compare, first_wrong};
use crate::program::buffers::elements_of_file;
use crate::program::error::PrepareError;
use flipwave_injector::{Golden, Workload};
use std::path::PathBuf;

/// An output of the golden run that differs from its `expected` file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "the golden run is wrong: {wrong} of {elements} elements of the output `{output}` differ from {} by \
     more than the tolerance in `compare` ({tolerance}); the first is element {first}: {found}, expected \
     {expected}; the largest errors are absolute {absolute:?} and relative {relative:?}",
    file.display()
)]
pub struct Unexpected {
    /// Name of the output.
    pub output: String,
    /// File with the expected content.
    pub file: PathBuf,
    /// Number of elements.
    pub elements: usize,
    /// Number of wrong elements.
    pub wrong: u64,
    /// Tolerance of the comparison.
    pub tolerance: Tolerance,
    /// Index of the first wrong element.
    pub first: u64,
    /// Value of the first wrong element.
    pub found: String,
    /// Expected value of the first wrong element.
    pub expected: String,
    /// The largest |found - expected|, including correct elements.
    pub absolute: f64,
    /// The largest |found - expected| / |expected|, including correct elements.
    pub relative: f64,
}

/// Comparison of an output with its `expected` file.
pub(crate) struct ExpectedComparison<'a> {
    /// The output.
    pub buffer: &'a Buffer,
    /// Difference between the output and the file.
    pub difference: Difference,
    /// The error, if elements exceed the tolerance.
    pub unexpected: Option<Box<Unexpected>>,
}

/// Compares all outputs that have `expected` files.
///
/// # Errors
/// Returns an error if a file cannot be read or has the wrong size.
pub(crate) fn compare_with_expected<'a>(
    kernels: &'a Kernels,
    workload: &Workload,
    golden: &Golden,
) -> Result<Vec<ExpectedComparison<'a>>, PrepareError> {
    let mut all = Vec::new();
    for buffer in &kernels.buffers {
        let (Some(file), BufferRole::Output(tolerance)) = (&buffer.expected, &buffer.role) else {
            continue;
        };
        let outputs = workload.program.outputs.iter().zip(&golden.outputs);
        let Some((_, found)) = outputs.into_iter().find(|(output, _)| output.name == buffer.name)
        else {
            continue;
        };
        let expected = elements_of_file(file, buffer.element, buffer.count).map_err(|reason| {
            PrepareError::Buffer {
                buffer: buffer.name.clone(),
                reason: format!("expected: {reason}"),
            }
        })?;
        let found = found.bytes();
        let difference = compare(buffer.element, tolerance, &expected, &found);
        let first = first_wrong(buffer.element, tolerance, &expected, &found);
        let unexpected = first.map(|first| {
            let text = |bytes: &[u8]| buffer.element.text_of(bytes, first);
            Box::new(Unexpected {
                output: buffer.name.clone(),
                file: file.clone(),
                elements: buffer.count,
                wrong: difference.elements_wrong,
                tolerance: *tolerance,
                first,
                found: text(&found),
                expected: text(&expected),
                absolute: difference.max_abs_error,
                relative: difference.max_rel_error,
            })
        });
        all.push(ExpectedComparison { buffer, difference, unexpected });
    }
    Ok(all)
}
