//! Padding where inserted code meets the program's, for what the hardware does not keep apart.
//!
//! Code from a compiler keeps the manual hazards by itself, the program's as well as a hook's. Where
//! one stands beside the other nobody has looked yet. Every instruction is held against those that
//! can run before it, on all ways; two of the program's own are passed over, since what is inserted
//! between them only moves them apart.

mod decoder;
mod scalar_reads;
mod search;
mod slot;
mod stream;

use crate::flow::Disassembly;
use crate::layout::Edits;
use decoder::Decoder;
use flipwave_isa::{Isa, Rules};
use stream::Streams;

/// Pads by the target's `rules` the code in `edits` that is inserted into `program`.
///
/// # Errors
/// [`PaddingError`] for pieces that are no instructions of the target.
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
    // The last first: those before stay where they are.
    for (slot, bytes) in padding.into_iter().rev() {
        slot.insert(edits, bytes);
    }
    Ok(count)
}

/// Inserted code that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PaddingError {
    /// Bytes that do not decode.
    #[error("inserted code does not decode: {0}")]
    Decode(#[from] flipwave_isa::DecodeError),
    /// Text that does not assemble.
    #[error("padding does not assemble: {0}")]
    Assemble(#[from] flipwave_isa::AssembleError),
}
