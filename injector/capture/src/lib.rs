//! Captures: recorded runs of an application on one GPU, with its code objects, its dispatches and
//! the memory that they read, and what host and copy engines did to memory between them. A capture
//! is one SQLite file; data are compressed and stored once, by digest.
//!
//! Writes of kernels are not recorded: replaying the dispatches computes them again, and everything
//! else comes from the capture, byte for byte. Addresses are those of the run, so that pointers in
//! memory stay valid.

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

/// Version of the file format.
const FORMAT: i64 = 2;
