//! Instruction sets of targets.

use crate::{Float8, Instruction, OperationName, ProductShape, RegisterId, RegisterSpan};
use std::any::Any;
use std::fmt;

/// The instruction set of a target.
pub trait Architecture: fmt::Debug + Any + Send + Sync {
    /// Name of the target, as in campaign files: `gfx90a`.
    fn target(&self) -> &str;

    /// The register with a name.
    fn register(&self, name: &str) -> Option<RegisterId>;

    /// Examples of register names, for error messages: `a register like v4, s12 or vcc_lo`.
    fn register_examples(&self) -> &'static str;

    /// The operation with a name; `None` if no operation can have this name.
    fn operation(&self, name: &str) -> Option<OperationName>;

    /// Examples for [`Architecture::register_span`]: `v4, s[0:3], vcc, m0 or scc`.
    fn span_examples(&self) -> &'static str;

    /// Consecutive registers, as in campaign files: `s[0:3]`, `vcc`, `v7`.
    fn register_span(&self, text: &str) -> Option<RegisterSpan>;

    /// Returns `true` if results of the operation with a name are floating-point numbers.
    fn computes_numbers(&self, operation: &str) -> bool;

    /// Encoding of the target's 8-bit floating-point numbers.
    fn float8(&self) -> Float8 {
        Float8::Ocp
    }

    /// A register with a value per lane that every wave has.
    fn any_vector_register(&self) -> RegisterId;

    /// SIMD units that waves of a compute unit run on.
    fn simds(&self) -> SimdShape;

    /// Shape of the matrix product that an instruction computes, if it is one whose sum can be observed
    /// step by step.
    fn matrix_shape(&self, _inst: &dyn Instruction) -> Option<ProductShape> {
        None
    }

    /// The value itself, for code of its instruction set.
    fn as_any(&self) -> &dyn Any;
}

/// SIMD units of a compute unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimdShape {
    /// SIMD units per compute unit, at least 1.
    pub count: u8,
    /// Lanes that a SIMD unit executes at once, at least 1.
    pub width: u8,
}
