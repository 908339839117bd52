//! PTX, the instruction set of NVIDIA's virtual machine for GPUs: modules as text and as a tree, facts
//! about instructions, and control flow.
//!
//! NVIDIA's "Parallel Thread Execution ISA" 9.1 is the authority ("PTX ISA" in comments). [`parse`] reads
//! any module whose syntax is valid. Opcodes and modifiers that the [table of opcodes](OPCODES) lacks are
//! kept in the tree and printed again. [`resolve`] gives the tree's instructions addresses and registers:
//! the [`Code`] that is executed and that faults strike.

mod architecture;
mod code;
mod constant;
mod error;
mod facts;
mod flow;
mod form;
mod inst;
mod lexer;
mod matrix;
mod number;
mod opcode;
mod parser;
mod position;
mod printer;
mod registers;
mod resolve;
mod scalar;
mod special;
mod tree;

pub use architecture::Ptx;
pub use code::{
    Address, Argument, Code, Condition, EmulatedInst, FunctionCode, INSTRUCTION_BYTES, InstParts,
    Origin, RegisterCounts, Relocation, Signature, Slot, Symbol, Variable, pc_of,
};
pub use constant::{Constant, WARP_SIZE};
pub use error::{ParseError, ParseErrorKind};
pub use flow::{BasicBlock, CallGraph, ControlFlow};
pub use form::Form;
pub use inst::{Accesses, Inst};
pub use matrix::{MatrixForm, MatrixType, WarpgroupForm};
pub use number::{Number, Radix};
pub use opcode::{Class, OPCODES, OpcodeFacts};
pub use parser::parse;
pub use position::Position;
pub use registers::{CARRY, DECLARED, INSTRUCTION_SET, PREDICATES, Register, WORDS, carry};
pub use resolve::{ResolveError, ResolveErrorKind, resolve};
pub use scalar::{ScalarType, Space};
pub use special::{SpecialOperand, SpecialRegister};
pub use tree::*;

/// Maximum nesting of blocks, operands and expressions.
pub const MAX_DEPTH: usize = 64;
