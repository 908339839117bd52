//! Allocation of registers: descriptors, components of functions that share registers, and moves.

mod allocation;
mod component;
mod parallel_moves;
mod run;

pub use allocation::Allocation;
pub use component::{Component, components};
pub(crate) use parallel_moves::{Move, set, sgprs};
pub use run::RegisterRun;
