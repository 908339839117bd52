//! Common view of instruction sets: addresses, lanes, registers, and facts about instructions.
//!
//! Fault injection, campaigns and reports use only these types and the traits [`Architecture`] and
//! [`Instruction`], which every instruction set implements. Code that decodes, executes or rewrites
//! instructions uses the types of its instruction set.

mod architecture;
mod float_format;
mod group;
mod instruction;
mod lane;
mod matrix;
mod operation;
mod pc;
mod register;
mod source_line;

pub use architecture::{Architecture, SimdShape};
pub use float_format::{Float8, FloatFormat};
pub use group::{Group, UnknownGroup};
pub use instruction::{Instruction, RegisterRole};
pub use lane::{Lane, LaneMask};
pub use matrix::{MatrixElement, ProductShape, SumPart, SumType};
pub use operation::OperationName;
pub use pc::Pc;
pub use register::{RegisterClass, RegisterId, RegisterNames, RegisterSpan};
pub use source_line::{SourceLine, SourceLines};
