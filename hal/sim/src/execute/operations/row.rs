//! Rows of the tables of operations.

use crate::execute::lane::Kind;
use crate::execute::matrix_sum::{MatrixElement, ProductShape, Steps, SummedElement};
use crate::instruction::{Op, ScalarFunction};
use crate::wave::Wave;

/// Makes a table of operations.
///
/// The attributes say what holds for all its rows: what becomes of denormals, what decides how
/// they round and which NaN comes out (see [`Numerics`]), which constructor of
/// [`VectorOperation`] compiles them, how far from exact they may be, and what says that they are exact
/// where they are and compute with floating-point numbers.
macro_rules! operations {
    (
        $(#[$documentation:meta])*
        $table:ident {
            denormals: $denormals:ident, rounds: $rounds:ident, nans: $nans:ident, levels: $of:ident
            $(, accuracy: $accuracy:expr)? $(, unsettled: $unsettled:expr)? $(, source: $source:expr)?
        }
        $($name:tt ($($argument:ident: $type:ty),* $(; $context:ident)?) -> $result:ty $body:block)*
    ) => {
        $(#[$documentation])*
        pub(in $crate::execute::operations) static $table: &[$crate::execute::vector::VectorOperation] = {
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
                $crate::execute::vector::VectorOperation::$of::<Row>($name)
            }),*]
        };
    };
}
pub(super) use operations;

/// An operation on the wave as a whole.
pub struct WholeWaveOperation {
    /// Canonical name.
    pub name: &'static str,
    /// Kinds of the sources.
    pub sources: &'static [Kind],
    /// What executes it.
    pub function: ScalarFunction,
    /// What of it no source settles, and what is done here; `None` if all is known.
    pub unsettled: Option<&'static str>,
    /// What says that its floating-point results are these, to the bit.
    pub source: Option<&'static str>,
    /// What a product of matrices is made of.
    pub matrix: Option<MatrixProduct>,
}

/// A product of matrices, element by element.
#[derive(Clone, Copy)]
pub struct MatrixProduct {
    /// What it computes.
    pub shape: ProductShape,
    /// Computes one element of it, which is one of `shape`, by steps; nothing where the instruction
    /// makes none.
    pub sum: fn(&Wave, &Op, MatrixElement, &mut Steps<'_>) -> Option<SummedElement>,
}

impl WholeWaveOperation {
    /// One of which all is known.
    pub const fn new(
        name: &'static str,
        sources: &'static [Kind],
        function: ScalarFunction,
    ) -> WholeWaveOperation {
        WholeWaveOperation { name, sources, function, unsettled: None, source: None, matrix: None }
    }
}
