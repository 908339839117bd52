//! Control flow of functions.

mod blocks;
mod calls;

pub use blocks::{BasicBlock, ControlFlow};
pub use calls::CallGraph;
