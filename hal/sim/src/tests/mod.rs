//! The embedded GPU's tests that are of no one module: instructions against references that are
//! written differently, and the proof that none is missing.

pub mod bench;
mod compiled;
mod coverage;
mod executed;
mod generations;
pub mod operations;
mod rdna;
mod rdna_matrices;
pub mod scalar;
