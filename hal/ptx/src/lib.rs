//! PTX, the instruction set of NVIDIA's virtual machine for GPUs: modules as text and as a tree, facts
//! about instructions, and control flow.
//!
//! NVIDIA's "Parallel Thread Execution ISA" 9.1 is the authority ("PTX ISA" in comments). [`parse`] reads
//! any module whose syntax is valid. Opcodes and modifiers that the [table of opcodes](OPCODES) lacks are
//! kept in the tree and printed again.

mod error;
mod lexer;
mod number;
mod parser;
mod position;
mod printer;
mod scalar;
mod tree;

pub use error::{ParseError, ParseErrorKind};
pub use number::{Number, Radix};
pub use parser::parse;
pub use position::Position;
pub use scalar::{ScalarType, Space};
pub use tree::*;

/// Maximum nesting of blocks, operands and expressions.
pub const MAX_DEPTH: usize = 64;
