//! What Flipwave uses of the HSA runtime (ROCr), as C has it: `hsa.h`, `hsa_ext_amd.h` and
//! `hsa_api_trace.h` of ROCm 5.2, which later ones only add to.
//!
//! Nothing is linked. [`Library`] opens the runtime when the program runs; a tools library is
//! handed the runtime's [tables](HsaApiTable) instead. Names are those of the headers.

#![allow(non_camel_case_types, reason = "names are those of the headers")]

mod functions;
mod library;
mod packets;
mod tables;
mod types;

pub use functions::{Functions, signatures};
pub use library::{Library, LibraryError, virtual_memory_unmap};
pub use packets::*;
pub use tables::*;
pub use types::*;
