//! The instrumentation engine: hooks before and after instructions of AMDGPU code objects,
//! registers read and written, instructions removed and replaced.
//!
//! [`flow`] reads a code object's instructions into functions and blocks, [`dataflow`] finds the
//! registers that are live and the loads that are outstanding, [`registers`] what is free,
//! [`hook`] compiles hooks, [`layout`] puts edited code into a new
//! place, [`rewrite`] does all of it, and [`checker`] proves on the result what must be
//! kept. [`inspect`] shows what the analyses find.

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
