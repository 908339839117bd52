//! Outputs of the fault-free run beside what they must be, from files that the campaign names: results
//! of a plain computation on the host, for instance.

use crate::file::campaign::{Buffer, BufferRole, Kernels};
use crate::outputs::compare::{Difference, Tolerance, compare, first_wrong};
use crate::program::buffers::elements_of_file;
use crate::program::prepare::PrepareError;
use flipwave_injector::{Golden, Workload};
use std::path::PathBuf;

/// An output of the fault-free run that is not what the campaign file expects.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "the fault-free run is wrong: of {elements} elements of the output `{output}` {wrong} are not as \
     {} says, within the tolerance of `compare` ({tolerance}); the first is element {first}: {found} \
     in place of {expected}; the largest errors are absolute {absolute:?} and relative {relative:?}",
    file.display()
)]
pub struct Unexpected {
    /// The output.
    pub output: String,
    /// What it should hold.
    pub file: PathBuf,
    /// Its elements.
    pub elements: usize,
    /// How many are wrong.
    pub wrong: u64,
    /// How far they may be off.
    pub tolerance: Tolerance,
    /// The index of the first that is wrong.
    pub first: u64,
    /// That one.
    pub found: String,
    /// What it should be.
    pub expected: String,
    /// The largest |found - expected|, right elements included.
    pub absolute: f64,
    /// The largest |found - expected| / |expected|, right elements included.
    pub relative: f64,
}

/// How an output compares with what a file expects.
pub(crate) struct Compared<'a> {
    /// The output.
    pub buffer: &'a Buffer,
    /// How far it is off, beside the file's content.
    pub difference: Difference,
    /// What is wrong, if it is.
    pub unexpected: Option<Box<Unexpected>>,
}

/// Compares all outputs that have files of what they must be.
///
/// # Errors
/// A file that cannot be used.
pub(crate) fn compared<'a>(
    kernels: &'a Kernels,
    workload: &Workload,
    golden: &Golden,
) -> Result<Vec<Compared<'a>>, PrepareError> {
    let mut all = Vec::new();
    for buffer in &kernels.buffers {
        let (Some(file), BufferRole::Output(tolerance)) = (&buffer.expected, &buffer.role) else {
            continue;
        };
        let outputs = workload.program.outputs.iter().zip(&golden.outputs);
        let Some((_, found)) = outputs.into_iter().find(|(own, _)| own.name == buffer.name) else {
            continue;
        };
        let expected = elements_of_file(file, buffer.element, buffer.count).map_err(|reason| {
            PrepareError::Buffer {
                buffer: buffer.name.clone(),
                reason: format!("expected: {reason}"),
            }
        })?;
        let (element, found) = ((buffer.element, tolerance), found.bytes());
        let difference = compare(buffer.element, tolerance, &expected, &found);
        let first = first_wrong(element, &expected, &found);
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
        all.push(Compared { buffer, difference, unexpected });
    }
    Ok(all)
}
