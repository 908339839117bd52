//! Hardening of PTX modules.
//!
//! Registers of PTX are virtual: each register that a copy writes has a *shadow* of the same type. Registers
//! of each width collect the differences of a lane, and each lane that leaves a function with a difference
//! counts it.

mod candidates;
mod chains;
mod differences;
mod duplicate;
mod harden;
mod program;
mod results;

pub use candidates::candidates;
pub use harden::{Hardened, VARIABLE, harden};

#[cfg(test)]
mod tests;
