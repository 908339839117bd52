//! Compares execution of laid-out code with execution of the old code.

mod edges;
mod random;
pub mod sample;
mod walk;
