//! Where the wrong elements of an output lie.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Where the wrong elements of an output with dimensions lie. Studies of GPUs in neutron beams tell the
/// same patterns apart: D. A. G. de Oliveira, L. L. Pilla, T. Santini and P. Rech, "Evaluation and
/// Mitigation of Radiation-Induced Soft Errors in Graphics Processing Units", IEEE Transactions on
/// Computers 65(3) (2016): single, line, square, cubic and random. Here a line says along which
/// dimension it lies, and how dense a square is, is stated.
///
/// The *box* is the smallest that holds all wrong elements, with its edges along the dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorShape {
    /// One element.
    Single,
    /// Several, of which only the last index differs, that of neighbours in memory.
    Row,
    /// Several, of which only the index before the last differs.
    Column,
    /// Several of three dimensions, of which only the first index differs.
    Pillar,
    /// Two indices differ, and at least half of the box is wrong.
    Block,
    /// Three indices differ, and at least half of the box is wrong.
    Cubic,
    /// Two or three indices differ, and less than half of the box is wrong.
    Random,
    /// Elements of several outputs with dimensions are wrong.
    Several,
}

impl ErrorShape {
    /// Every shape.
    pub const ALL: [ErrorShape; 8] = [
        ErrorShape::Single,
        ErrorShape::Row,
        ErrorShape::Column,
        ErrorShape::Pillar,
        ErrorShape::Block,
        ErrorShape::Cubic,
        ErrorShape::Random,
        ErrorShape::Several,
    ];

    /// The shape's name in results.
    pub fn name(self) -> &'static str {
        match self {
            ErrorShape::Single => "single",
            ErrorShape::Row => "row",
            ErrorShape::Column => "column",
            ErrorShape::Pillar => "pillar",
            ErrorShape::Block => "block",
            ErrorShape::Cubic => "cubic",
            ErrorShape::Random => "random",
            ErrorShape::Several => "several",
        }
    }

    /// What it means, in a few words.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            ErrorShape::Single => "one element",
            ErrorShape::Row => "along the last dimension",
            ErrorShape::Column => "along the dimension before the last",
            ErrorShape::Pillar => "along the first of three dimensions",
            ErrorShape::Block => "in a plane, at least half of the box around them",
            ErrorShape::Cubic => "in three dimensions, at least half of the box around them",
            ErrorShape::Random => "less than half of the box around them",
            ErrorShape::Several => "in several outputs",
        }
    }
}

impl fmt::Display for ErrorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What of NaN and infinities a run has where the fault-free run has others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Introduced {
    /// Neither.
    Neither,
    /// NaN.
    Nan,
    /// Infinities.
    Inf,
    /// Both.
    Both,
}

impl Introduced {
    pub fn of(nan: u64, inf: u64) -> Introduced {
        match (nan > 0, inf > 0) {
            (false, false) => Introduced::Neither,
            (true, false) => Introduced::Nan,
            (false, true) => Introduced::Inf,
            (true, true) => Introduced::Both,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Introduced::Neither => "none",
            Introduced::Nan => "nan",
            Introduced::Inf => "inf",
            Introduced::Both => "nan and inf",
        }
    }
}
