//! The spatial pattern of wrong output elements, and NaN and infinities among them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The spatial pattern of the wrong elements of an output with dimensions. Studies of GPUs in neutron beams
/// distinguish the patterns single, line, square, cubic and random: D. A. G. de Oliveira, L. L. Pilla,
/// T. Santini and P. Rech, "Evaluation and Mitigation of Radiation-Induced Soft Errors in Graphics
/// Processing Units", IEEE Transactions on Computers 65(3) (2016). Here lines are also divided by their
/// dimension, and squares have a minimum density.
///
/// The *bounding box* is the smallest box along the dimensions that contains all wrong elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorShape {
    /// One element.
    Single,
    /// Several elements that differ only in the last index, which is contiguous in memory.
    Row,
    /// Several elements that differ only in the second-to-last index.
    Column,
    /// Several elements of three dimensions that differ only in the first index.
    Pillar,
    /// Elements that differ in two indices; at least half of the bounding box is wrong.
    Block,
    /// Elements that differ in three indices; at least half of the bounding box is wrong.
    Cubic,
    /// Elements that differ in two or three indices; less than half of the bounding box is wrong.
    Random,
    /// Elements of several outputs with dimensions.
    Several,
}

impl ErrorShape {
    /// All shapes.
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

    /// Name in result tables.
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

    /// Short description for reports.
    pub(crate) fn description(self) -> &'static str {
        match self {
            ErrorShape::Single => "one element",
            ErrorShape::Row => "along the last dimension",
            ErrorShape::Column => "along the second-to-last dimension",
            ErrorShape::Pillar => "along the first of three dimensions",
            ErrorShape::Block => "in a plane, at least half of the bounding box",
            ErrorShape::Cubic => "in three dimensions, at least half of the bounding box",
            ErrorShape::Random => "less than half of the bounding box",
            ErrorShape::Several => "in several outputs",
        }
    }
}

impl fmt::Display for ErrorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Kinds of non-finite elements that a fault introduced into the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NonFinite {
    Neither,
    Nan,
    Inf,
    Both,
}

impl NonFinite {
    /// Classifies a run by its numbers of NaN and infinities.
    pub fn from_counts(nan: u64, inf: u64) -> NonFinite {
        match (nan > 0, inf > 0) {
            (false, false) => NonFinite::Neither,
            (true, false) => NonFinite::Nan,
            (false, true) => NonFinite::Inf,
            (true, true) => NonFinite::Both,
        }
    }

    /// Name in result tables.
    pub fn name(self) -> &'static str {
        match self {
            NonFinite::Neither => "none",
            NonFinite::Nan => "nan",
            NonFinite::Inf => "inf",
            NonFinite::Both => "nan and inf",
        }
    }
}
