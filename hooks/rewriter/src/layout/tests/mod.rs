//! Layout against a walk through the old code.

mod edges;
mod random;
pub mod sample;
mod walk;
