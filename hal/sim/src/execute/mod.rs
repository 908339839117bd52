//! Instruction semantics: one module for each kind of instruction, and the tables of operations.

mod accessed;
pub mod address_rules;
pub mod buffer;
pub mod control;
mod exchange;
mod format;
pub mod hardware_register;
pub mod lane;
mod lane_access;
pub mod lds;
pub mod matrix_sum;
pub mod operand;
pub mod operations;
pub mod scalar;
pub mod scalar_memory;
pub mod step;
pub mod tensor;
pub mod vector;
pub mod vector_memory;

pub use accessed::accessed;
