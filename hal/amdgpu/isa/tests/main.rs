//! Decoding, assembling and hazard tables, compared with LLVM.

mod common;
mod facts;
mod hazards;
mod narrow_results;
mod round_trip;
mod threads;
mod unused_fields;
