//! Rows of the tables of operations.

use crate::execute::lane::Kind;
use crate::execute::matrix_sum::{Steps, SummedElement};
use crate::instruction::{Op, ScalarFunction};
use crate::wave::Wave;
use flipwave_arch::{MatrixElement, ProductShape};

/// Makes a table of operations.
///
/// The attributes apply to all rows: treatment of denormals, rounding mode, and choice of NaN (see
/// [`Numerics`]), the constructor of [`VectorOperation`] that compiles them, their error bound, and
/// the source that establishes that floating-point results are exact.
macro_rules! operations {
    (
        $(#[$documentation:meta])*
        $table:ident {
            denormals: $denormals:ident, rounds: $rounds:ident, nans: $nans:ident, levels: $levels:ident
            $(, accuracy: $accuracy:expr)? $(, unsettled: $unsettled:expr)? $(, source: $source:expr)?
        }
        $($name:tt ($($argument:ident: $type:ty),* $(; $context:ident)?) -> $result:ty $body:block)*
    ) => {
        $(#[$documentation])*
        pub(in $crate::execute::operations) static $table: &[$crate::instruction::VectorOperation] = {
            const NUMERICS: $crate::execute::lane::Numerics = $crate::execute::lane::Numerics {
                denormals: $crate::execute::lane::Denormals::$denormals,
                rounds: $crate::execute::lane::Rounding::$rounds,
                nans: $crate::execute::lane::Nans::$nans,
                accuracy: {
                    const STATED: &[$crate::execute::lane::Accuracy] = &[$($accuracy)?];
                    STATED.first().copied()
                },
                unsettled: {
                    const STATED: &[&str] = &[$($unsettled)?];
                    STATED.first().copied()
                },
                source: {
                    const STATED: &[&str] = &[$($source)?];
                    STATED.first().copied()
                },
            };
            &[$({
                struct Row;
                impl $crate::execute::vector::LaneOperation for Row {
                    type Arguments = ($($type,)*);
                    type Result = $result;
                    const NUMERICS: $crate::execute::lane::Numerics = NUMERICS;
                    #[inline(always)]
                    fn apply<R: $crate::execute::lane::rounding::Rounder>(
                        ($($argument,)*): Self::Arguments,
                        _context: $crate::execute::vector::Context<R>,
                    ) -> $result {
                        $(let $context = _context;)?
                        $body
                    }
                }
                $crate::instruction::VectorOperation::$levels::<Row>($name)
            }),*]
        };
    };
}
pub(super) use operations;

/// An operation on the whole wave.
pub struct WholeWaveOperation {
    /// Canonical name.
    pub name: &'static str,
    /// Kinds of the sources.
    pub sources: &'static [Kind],
    /// Function that executes it.
    pub function: ScalarFunction,
    /// Behaviour that no source settles, and the behaviour implemented here; `None` if all is
    /// known.
    pub unsettled: Option<&'static str>,
    /// Document or measurement which states that floating-point results are bit-exact.
    pub source: Option<&'static str>,
    /// Element-wise summation of a matrix product.
    pub matrix: Option<MatrixProduct>,
}

/// Element-wise computation of a matrix product.
#[derive(Clone, Copy)]
pub struct MatrixProduct {
    /// Dimensions of the product.
    pub shape: ProductShape,
    /// Sums one element inside `shape`, step by step; `None` if the instruction does not compute
    /// it.
    pub sum: fn(&Wave, &Op, MatrixElement, &mut Steps<'_>) -> Option<SummedElement>,
}

impl WholeWaveOperation {
    /// Creates a row without unsettled behaviour.
    pub const fn new(
        name: &'static str,
        sources: &'static [Kind],
        function: ScalarFunction,
    ) -> WholeWaveOperation {
        WholeWaveOperation { name, sources, function, unsettled: None, source: None, matrix: None }
    }
}
