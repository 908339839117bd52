//! The instrumentation engine: inserts hooks before and after instructions of AMDGPU code objects, and removes
//! and replaces instructions.
//!
//! [`flow`] finds the functions and basic blocks of a code object, [`dataflow`] computes live registers and
//! outstanding memory operations, and [`registers`] finds free registers. [`hook`] compiles hooks, [`layout`]
//! assigns new addresses to edited code, and [`rewrite`] combines these steps. [`checker`] proves that the
//! result preserves the original program. [`inspect`] summarizes the results of the analyses.

pub mod checker;
pub mod dataflow;
pub mod flow;
pub mod hook;
pub mod inspect;
pub mod layout;
pub mod registers;
pub mod rewrite;
mod site;
