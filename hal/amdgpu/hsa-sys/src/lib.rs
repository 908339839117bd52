//! C API of the HSA runtime (ROCr): the parts of `hsa.h`, `hsa_ext_amd.h` and `hsa_api_trace.h` that
//! Flipwave uses. Declarations follow ROCm 5.2; later versions only add to them.
//!
//! The runtime is not linked. [`Library`] opens it at run time; a tools library gets the runtime's
//! [tables](HsaApiTable) instead. All names are the names in the headers.

#![allow(non_camel_case_types, reason = "names are those of the headers")]

mod functions;
mod library;
mod packets;
mod tables;
mod types;

pub use functions::{Functions, signatures};
pub use library::{Library, LibraryError, find_vmem_unmap};
pub use packets::*;
pub use tables::*;
pub use types::*;
