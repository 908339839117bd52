//! Tests of the embedded GPU that span modules: instructions against independent references, and
//! completeness of the instruction tables.

pub mod bench;
mod compiled;
mod coverage;
mod executed;
mod generations;
pub mod operations;
mod rdna;
mod rdna_matrices;
pub mod scalar;
