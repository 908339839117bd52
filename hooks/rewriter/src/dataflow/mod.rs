//! Dataflow analyses of a program: liveness, outstanding memory operations, and indexed registers.

mod index_mode;
mod indexed;
mod known_bits;
pub(crate) mod liveness;
mod outstanding;

pub(crate) use index_mode::{IndexMode, index_mode};
pub(crate) use indexed::IndexedRegisters;
pub use liveness::{Live, Liveness, RegisterUse, initialised};
pub use outstanding::{Outstanding, OutstandingLoads, late_sources};
