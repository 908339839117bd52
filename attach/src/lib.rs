//! What runs inside of an application, and how it gets there: a library that the program loads in
//! place of libhsakmt, through which AMD's runtime finds embedded GPUs.

mod inside;
mod launch;
mod session;

pub use flipwave_kfd::processors;
pub use launch::{Library, LibraryError, become_application};
pub use session::Session;
