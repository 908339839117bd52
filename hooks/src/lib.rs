//! The instrumentation engine: hooks before and after instructions of AMDGPU code objects,
//! registers read and written, instructions removed and replaced.
//!
//! [`flow`] reads a code object's instructions into functions and blocks, [`liveness`] says which
//! registers hold values that somebody still wants, [`hook`] compiles hooks, [`layout`] puts
//! edited code into a new place, [`checker`] proves on the result what must be kept, and
//! [`lockstep`] shows it by execution.

pub mod allocation;
pub mod checker;
mod classes;
pub mod component;
pub mod control;
mod entry;
pub mod flow;
pub mod guest;
pub mod hook;
pub mod inspect;
pub mod layout;
pub mod liveness;
pub mod lockstep;
mod moves;
pub mod rewrite;
mod seams;
pub mod site;
pub mod tools;
pub mod under_way;
pub mod variables;
