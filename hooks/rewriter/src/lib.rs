//! The instrumentation engine: calls hooks before, after and instead of instructions of AMDGPU code
//! objects, and removes or replaces instructions.
//!
//! - [`flow`] decodes a code object into functions and basic blocks.
//! - [`dataflow`] computes live registers and outstanding loads.
//! - [`registers`] finds free registers.
//! - [`hook`] compiles hooks.
//! - [`point`] defines the program points at which code is inserted.
//! - [`layout`] assigns addresses to edited code and fixes references to it.
//! - [`rewrite`] runs all steps and returns the new code object.
//! - [`checker`] proves that the result preserves the original program.
//! - [`inspect`] shows the results of the analyses.

pub mod checker;
pub mod dataflow;
pub mod flow;
pub mod hook;
pub mod inspect;
pub mod layout;
pub mod point;
pub mod registers;
pub mod rewrite;
mod site;
