//! Rows of the operation tables. Module `execute` has the tables.

use super::kind::{Kind, ResultKind};
use super::numerics::Numerics;
use super::op::{ScalarFunction, VectorFunction};
use crate::wave::Level;

/// A row of the operation table.
pub struct VectorOperation {
    /// Canonical name.
    pub name: &'static str,
    /// Kinds of the sources.
    pub sources: &'static [Kind],
    /// Destination of the result.
    pub result: ResultKind,
    /// `true` if the result is floating-point, so that it can be clamped and scaled.
    pub float: bool,
    /// Properties of its arithmetic.
    pub numerics: Numerics,
    /// Whole-wave functions, indexed by [`Level`].
    pub(crate) run: [VectorFunction; 3],
}

impl VectorOperation {
    /// Whole-wave function for this host.
    pub fn function(&self, level: Level) -> VectorFunction {
        self.run[level as usize]
    }
}

/// A row of the table of scalar operations.
pub struct ScalarOperation {
    /// Canonical name.
    pub name: &'static str,
    /// 32-bit words of each source. A destination that is also read is the last source.
    pub sources: &'static [u8],
    /// Executes it.
    pub run: ScalarFunction,
}
