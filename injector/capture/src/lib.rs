//! A run of an application on one GPU, recorded: its code objects, its dispatches with all that
//! they find in memory, and what host and copy engines did to memory between them. One SQLite file;
//! data are stored once, by their digest, and compressed.
//!
//! What a kernel writes is not in the file: whoever runs the dispatches again gets it, and has what
//! came from elsewhere beside it, byte for byte. Addresses are those of the run, so that pointers
//! that lie in memory stay right.

mod error;
mod memory;
mod reader;
mod schema;
mod step;
mod writer;

pub use error::CaptureError;
pub use reader::Capture;
pub use step::{CodeObjectId, RecordedCode, RecordedDispatch, Step};
pub use writer::Writer;

/// The version of the format.
const FORMAT: i64 = 2;
