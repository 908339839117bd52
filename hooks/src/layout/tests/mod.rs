//! Layout against a walk through the old code.

mod edges;
mod random;
mod sample;
mod walk;
