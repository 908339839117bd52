//! Values of one lane: their layout in rows of words, floating-point formats, rounding, and writing
//! of results.

pub mod binary16;
mod float;
mod numerics;
mod result;
pub mod rounding;
pub mod small_float;
mod value;

pub use float::{Float, settle};
pub use numerics::{Accuracy, Denormals, Nans, Numerics, Rounding};
pub use result::{LaneResult, PerLane, ResultKind};
pub use value::{
    Arguments, HighHalf, Kind, LaneValue, LowHalf, Mixed, MixedBrain, Pair, SourceRows,
};
