//! Padding against hazards between inserted and original code that hardware does not resolve.
//!
//! Compilers mitigate hazards within the program and within hooks, but not between the two. Each
//! instruction is compared with the instructions that can run before it, on all paths. Pairs of original
//! instructions are skipped, because insertions only increase their distance.

mod decoder;
mod error;
mod scalar_reads;
mod search;
mod slot;
mod stream;

pub use error::PaddingError;

use crate::flow::Disassembly;
use crate::layout::Edits;
use decoder::Decoder;
use flipwave_isa::{Isa, Rules};
use stream::Streams;

/// Adds padding to `edits` of `program`, as the `rules` of the target require. Returns the number of inserted
/// instructions.
///
/// # Errors
/// [`PaddingError`] if inserted code is invalid.
pub fn pad(
    rules: Rules,
    program: &Disassembly,
    edits: &mut Edits,
    isa: &Isa,
) -> Result<u32, PaddingError> {
    let mut decoder = Decoder::new(isa, &rules);
    let mut streams = Streams::read(program, edits, &mut decoder)?;
    decoder.narrow(streams.items().map(|item| &*item.roles));
    let mut padding = streams.pad(&mut decoder)?;
    if let Some(begin) = rules.sgpr_hazards {
        streams.pad_scalar_reads(program, begin, &mut decoder, &mut padding)?;
    }
    let count = padding.values().map(Vec::len).sum::<usize>() as u32;
    // In reverse order, so that earlier slots remain valid.
    for (slot, bytes) in padding.into_iter().rev() {
        slot.insert(edits, bytes);
    }
    Ok(count)
}
